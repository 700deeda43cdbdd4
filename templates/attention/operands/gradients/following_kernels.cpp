#include "templates/attention/operands/gradients/following_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/spec/operators/hstu_attention/operands/sums.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/launch_slots.h"

namespace hstujit {

namespace {

// As in tiles.cuh.
constexpr int64_t kTileSize = 64;
constexpr int kThreads = 128;
constexpr int kSumThreads = 256;
constexpr int kQTilesOfGroup = 8;  // as in interval_bounds.cuh

// Left to itself, the compiler spills for the sake of a third CTA.
constexpr int kResidentBlocks = 2;

// Hopper's kernels have maps of them.
void add_operands(const AttentionSpec& spec, LaunchPlan& plan) {
  const Signature signature = spec.signature(Direction::kBackward);
  const char* type = spec.params().dtype == DataType::kFp32 ? "const float*" : "const u16*";
  for (const char* tensor : {"q", "k", "v", "dout"}) {
    for (ParamSlot& slot : attention_tensor_slots(signature, tensor, type)) {
      const bool known = std::any_of(plan.slots.begin(), plan.slots.end(),
                                     [&](const ParamSlot& other) { return other.name == slot.name; });
      if (!known) plan.slots.push_back(std::move(slot));
    }
  }
}

class Kernels {
 public:
  Kernels(const AttentionSpec& spec, const DeviceSpec& device, const FoundOtherwise& found, LaunchPlan& plan)
      : spec_(spec),
        device_(device),
        params_(spec.params()),
        signature_(spec.signature(Direction::kBackward)),
        sums_(spec.operands(), spec.shares_sites()),
        found_(found),
        regions_(plan.workspace.regions.size()),
        plan_(plan) {}

  void add() {
    const bool bias = params_.returns_dbias() && !found_.bias, scale = params_.returns_dfactors();
    const auto& operands = spec_.operands();
    const bool slopes = std::ranges::any_of(operands, &Operand::has_slopes);
    const bool sites = sums_.count() > 0 && found_.site_warps == 0;
    if (bias || scale || slopes || sites) add_operands(spec_, plan_);
    for (const Operand& operand : operands) {
      if (!operand.has_slopes()) continue;
      operand.kind == &sequence_kind() ? add_sequence_gradient(operand)
      : operand.kind == &pair_kind()   ? add_pair_gradient(operand)
                                       : add_row_gradient(operand);
    }
    if (bias) add_kernel("bias_gradient", kThreads, {batch(), constant_factor(params_.bias_heads()), tiles(), tiles()});
    if (scale) {
      add_kernel("scale_gradient", kThreads, {batch(), tiles()});
      if (!params_.has_row_factors()) {
        add_row_sums();
        add_kernel("add_row_sums", kSumThreads, {constant_factor(1)});
      }
    }
    if (sites) add_site_gradients();
    if (found_.site_warps > 0) add_site_sums(plan_.persistent_blocks * found_.site_warps);
  }

 private:
  GridFactor batch() const { return batch_factor(signature_); }

  GridFactor tiles() const { return scalar_factor(find_argument(signature_, "max_seq_len"), kTileSize); }

  void add_row_gradient(const Operand& operand) {
    std::vector<GridFactor> grid = {batch(), tiles()};
    if (operand.heads > 0) grid.push_back(constant_factor(params_.heads));
    add_kernel("row_gradient_" + operand.name, kThreads, grid);
    plan_.following.back().function = "RowGradient<" + operand.slopes_struct() + ">::template run";
  }

  void add_pair_gradient(const Operand& operand) {
    add_kernel("pair_gradient_" + operand.name, kThreads, {batch(), constant_factor(operand.heads), tiles(), tiles()});
    plan_.following.back().function = "PairGradient<" + operand.slopes_struct() + ">::template run";
  }

  // Sums of tiles of rows, and then those of sequences.
  void add_sequence_gradient(const Operand& operand) {
    const bool has_sums = std::ranges::find(plan_.slots, "sequence_sums", &ParamSlot::name) != plan_.slots.end();
    const GridFactor bytes = constant_factor(static_cast<int64_t>(sizeof(float)));
    if (!has_sums) add_workspace_region("sequence_sums", "float*", {{batch(), tiles(), bytes}, false}, plan_);
    add_kernel("sequence_gradient_" + operand.name, kThreads, {batch(), tiles()});
    plan_.following.back().function = "SequenceGradient<" + operand.slopes_struct() + ">::template run";
    add_kernel("add_sequence_sums_" + operand.name, 32, {batch()});
    plan_.following.back().function = "SequenceGradient<" + operand.slopes_struct() + ">::template add";
  }

  void add_kernel(const std::string& function, int threads, std::vector<GridFactor> grid) {
    FollowingKernel kernel;
    kernel.kernel_name = plan_.kernel_name + "_" + function;
    kernel.function = function;
    kernel.threads = threads;
    kernel.grid = std::move(grid);
    kernel.resident_blocks = kResidentBlocks;
    plan_.following.push_back(std::move(kernel));
  }

  // As many CTAs as are resident at once, whose sums follow one another.
  void add_site_gradients() {
    add_kernel("site_gradients", kThreads, {batch(), tiles()});
    FollowingKernel& kernel = plan_.following.back();
    kernel.shared_memory = sums_.shared_bytes();
    const int64_t fit = device_.multiprocessor_shared_memory() / (kernel.shared_memory + kReservedSharedMemory);
    kernel.resident_blocks = static_cast<int>(std::clamp<int64_t>(fit, 1, kResidentBlocks));
    kernel.max_blocks = device_.sm_count * kernel.resident_blocks;
    add_site_sums(kernel.max_blocks);
  }

  // Adds up what is in so many places of the workspace: of CTAs, or of their warps.
  void add_site_sums(int64_t places) {
    const GridFactor bytes = constant_factor(places * sums_.count() * static_cast<int64_t>(sizeof(float)));
    add_workspace_region("site_sums", "float*", {{bytes}, false}, plan_);
    add_workspace_region("site_blocks", "int*", {{constant_factor(sizeof(int32_t))}, false}, plan_);
    add_kernel("add_site_sums", kSumThreads, {constant_factor(ceil_div(sums_.count(), int64_t{kSumThreads}))});
  }

  void add_row_sums() {
    // The sums of what heads with softmax read come later, and need what is known of rows.
    const bool all_read = !params_.has_softmax_score() || sums_.count() == 0;
    if (regions_ == 0 || !all_read) {
      const GridFactor bytes = constant_factor(static_cast<int64_t>(sizeof(float)));
      add_workspace_region("row_sums", "float*", {{size_factor(signature_, "q"), bytes}, false}, plan_);
    } else {
      // The last one that the plan came with has a number for each row at least, and nobody reads it any more.
      plan_.slots.push_back(workspace_slot("row_sums", "float*", regions_ - 1));
    }
  }

  const AttentionSpec& spec_;
  const DeviceSpec& device_;
  const HstuAttentionParams& params_;
  const Signature signature_;
  const OperandSums sums_;
  const FoundOtherwise found_;
  const size_t regions_;  // of the workspace, before any is added
  LaunchPlan& plan_;
};

// Lets the plan's kernel follow another one, whose grid is for the caller to say.
void move_behind_another(LaunchPlan& plan) {
  FollowingKernel gradients;
  gradients.kernel_name = plan.kernel_name + "_gradients";
  gradients.function = "attention_gradients";
  gradients.threads = plan.threads;
  gradients.shared_memory = plan.shared_memory;
  gradients.grid = plan.grid;
  gradients.max_blocks = std::exchange(plan.persistent_blocks, 0);
  gradients.resident_blocks = plan.resident_blocks;
  plan.following.insert(plan.following.begin(), std::move(gradients));
  plan.threads = kThreads;
  plan.shared_memory = 0;
  plan.resident_blocks = kResidentBlocks;
}

}  // namespace

void add_softmax_rows(const AttentionSpec& spec, LaunchPlan& plan) {
  if (!spec.params().has_softmax()) return;
  add_operands(spec, plan);
  add_softmax_rows(spec, {kTileSize, kThreads, 0, kResidentBlocks}, plan);
}

void add_softmax_rows(const AttentionSpec& spec, const SoftmaxRowsKernel& kernel, LaunchPlan& plan) {
  move_behind_another(plan);
  plan.threads = kernel.threads;
  plan.shared_memory = kernel.shared_memory;
  plan.resident_blocks = kernel.resident_blocks;
  const Signature signature = spec.signature(Direction::kBackward);
  const GridFactor heads = constant_factor(spec.params().num_softmax_heads);
  plan.grid = {batch_factor(signature), heads, scalar_factor(find_argument(signature, "max_seq_len"), kernel.rows)};
  const GridFactor bytes = constant_factor(2 * static_cast<int64_t>(sizeof(float)));
  add_workspace_region("softmax_rows", "float2*", {{size_factor(signature, "q"), heads, bytes}, false}, plan);
}

void add_interval_bounds(const AttentionSpec& spec, int64_t q_tile_rows, LaunchPlan& plan) {
  if (!spec.params().has_intervals()) return;
  move_behind_another(plan);
  const Signature signature = spec.signature(Direction::kBackward);
  const int64_t heads = spec.params().attn_func_heads, intervals = (spec.params().attn_func + 1) / 2;
  const int64_t group_rows = kQTilesOfGroup * q_tile_rows;
  plan.threads = kQTilesOfGroup * 32;
  plan.grid = {batch_factor(signature), constant_factor(heads),
               scalar_factor(find_argument(signature, "max_seq_len"), group_rows)};
  const GridFactor bytes = constant_factor(heads * intervals * 4 * static_cast<int64_t>(sizeof(int32_t)));
  const auto add_region = [&](const char* name, int64_t rows) {
    // One region behind the other: each sequence may begin within a Q tile, or a group.
    add_workspace_region(name, "int*", {{size_factor(signature, "q", rows), bytes}, false}, plan);
    plan.workspace.regions.push_back({{size_factor(signature, "seq_offsets"), bytes}, false});
  };
  add_region("interval_bounds", q_tile_rows);
  add_region("interval_groups", group_rows);
}

void add_gradient_kernels(const AttentionSpec& spec, const DeviceSpec& device, const FoundOtherwise& found,
                          LaunchPlan& plan) {
  Kernels(spec, device, found, plan).add();
}

std::vector<Rejection> gradient_rejections(const AttentionSpec& spec, const DeviceSpec& device) {
  const OperandSums sums(spec.operands(), spec.shares_sites());
  if (sums.count() == 0 || sums.shared_bytes() <= device.shared_memory) return {};
  return {{"operand",
           fmt::format("the score's operands with gradients have {} elements, and the longest table {} "
                       "entries; their sums need {} bytes of shared memory, and {} has {}",
                       sums.count(), sums.most_entries, sums.shared_bytes(), device.name, device.shared_memory)}};
}

}  // namespace hstujit
