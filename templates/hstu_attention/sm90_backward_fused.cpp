// Host face of sm90_backward_fused.cuh: attention backward for Hopper, S and dP computed once.
#include <fmt/format.h>

#include "compiler/support/integers.h"
#include "templates/hstu_attention/gradient_kernels.h"
#include "templates/hstu_attention/launch_slots.h"
#include "templates/hstu_attention/sm90_backward_fused_cost.h"
#include "templates/hstu_attention/sm90_backward_fused_resources.h"
#include "templates/hstu_attention/sm90_limits.h"
#include "templates/hstu_attention/sm90_machine.h"
#include "templates/hstu_attention/sm90_wgmma.h"

namespace hstujit {

namespace {

using sm90::backward::FusedResources;

constexpr int64_t kBlockRows = 64;
// Of the layout of dq_parts: the template has them, too, and compares.
constexpr int64_t kPartGroup = 16;
constexpr int64_t kPartLines = 8;
constexpr int kConvertThreads = 256;

const AttentionSpec& cast(const OpSpec& spec) { return static_cast<const AttentionSpec&>(spec); }

// What blocks take the next tile, or sequence and head, by.
void add_counter(LaunchPlan& plan) {
  constexpr int64_t kTaken = 8;  // bytes
  add_workspace_region("taken_tiles", "u64*", {{constant_factor(kTaken)}, true}, plan);
}

// What blocks of the "ordered" schedule tell one another: turns, as many for each head as there are blocks of rows, and
// one more for each sequence (turn_of in sm90_backward_order.cuh).
void add_turns(const AttentionSpec& spec, const Signature& signature, LaunchPlan& plan) {
  constexpr int64_t kTurn = 4;  // bytes
  const GridFactor counters = constant_factor(kTurn * spec.params().heads);
  add_workspace_region("turns", "u32*", {{size_factor(signature, "q", kBlockRows), counters}, true}, plan);
  plan.workspace.regions.push_back({{size_factor(signature, "seq_offsets"), counters}, true});
}

class FusedBackwardSm90 final : public Skeleton {
 public:
  std::string_view name() const override { return "hstu_attention/sm90_backward_fused"; }
  std::string_view entry_file() const override { return "hstu_attention/sm90_backward_fused.cuh"; }
  std::string_view op() const override { return "hstu_attention"; }
  Direction direction() const override { return Direction::kBackward; }
  // In a persistent list, parts of dq are added in the order in which blocks come to it.
  bool deterministic(const KernelConfig& config) const override { return config.schedule != "persistent"; }

  std::vector<KernelConfig> space(const OpSpec& spec) const override;
  std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                const DeviceSpec& device) const override;
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override;
  double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                  const ProblemSize& size) const override {
    return sm90::backward::estimate_fused_ms(cast(spec), config, device, size);
  }
  std::vector<std::pair<std::string, std::string>> constants(const OpSpec& spec,
                                                             const KernelConfig& config) const override;
  std::string prelude(const OpSpec& spec, const KernelConfig& config) const override;
};

std::vector<KernelConfig> FusedBackwardSm90::space(const OpSpec& spec) const {
  std::vector<KernelConfig> configs;
  if (cast(spec).params().dtype == DataType::kFp32) return configs;
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
  };
  const auto add = [&](const Shape& shape, int64_t stages, const char* schedule) {
    configs.push_back(sm90::tile_config(name(), shape.consumers, kBlockRows, stages, shape.blocks_per_sm));
    configs.back().schedule = schedule;
  };
  for (const Shape& shape : {Shape{2, 1}, Shape{1, 2}, Shape{1, 1}}) {
    for (const int64_t stages : {2, 3, 4}) add(shape, stages, "persistent");
    // One warpgroup alone on a multiprocessor has nobody to fill in while it waits.
    if (shape.consumers * shape.blocks_per_sm > 1) {
      for (const int64_t stages : {2, 3}) add(shape, stages, "whole");
    }
    // Blocks that share a multiprocessor hold one another up where they wait in order.
    if (shape.blocks_per_sm > 1) continue;
    for (const int64_t stages : {2, 3}) add(shape, stages, "ordered");
  }
  return configs;
}

std::vector<Rejection> FusedBackwardSm90::reject(const OpSpec& spec, const KernelConfig& config,
                                                 const DeviceSpec& device) const {
  const auto& params = cast(spec).params();
  std::vector<Rejection> reasons =
      sm90::general_rejections(params, config, device, "columns", "persistent ordered whole");
  if (config.block_n != kBlockRows) {
    reasons.push_back(
        {"block_n", fmt::format("block_n {}; allowed: {}, the rows of a product", config.block_n, kBlockRows)});
  }
  for (Rejection& reason : sm90::backward_rejections(config)) reasons.push_back(std::move(reason));
  if (!reasons.empty()) return reasons;
  const FusedResources resources(cast(spec), config);
  // The columns of a warpgroup begin at a tile of 64, or end before the next.
  const int64_t columns = resources.part_columns;
  const bool fits_tiles =
      config.consumers == 1 || columns % sm90::kTileColumns == 0 || (columns > 0 && sm90::kTileColumns % columns == 0);
  if (params.attn_dim % (config.consumers * kPartGroup) != 0 || !fits_tiles) {
    reasons.push_back(
        {"head_dim",
         fmt::format("{} columns of q cannot be shared out to {} consumers, each with a multiple of {} that "
                     "divides {} or is a multiple of it",
                     params.attn_dim, config.consumers, kPartGroup, sm90::kTileColumns)});
  }
  for (Rejection& reason : sm90::occupancy_limits(config, resources.threads, resources.shared_bytes,
                                                  resources.shared_bytes_resident, device)) {
    reasons.push_back(std::move(reason));
  }
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back(
        {"registers",
         fmt::format("a consumer thread needs about {} registers, with sums of {} and {} columns for 64 columns of a "
                     "tile, and gets {}",
                     resources.registers_needed, params.attn_dim, params.hidden_dim, resources.consumer_registers)});
  }
  return reasons;
}

LaunchPlan FusedBackwardSm90::launch_plan(const OpSpec& spec, const KernelConfig& config,
                                          const DeviceSpec& device) const {
  const auto& op = cast(spec);
  const auto& params = op.params();
  const FusedResources resources(op, config);
  const Signature signature = spec.signature(Direction::kBackward);

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_backward_fused_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}", attention_kernel_prefix(op),
                  to_string(params.dtype), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.schedule, config.blocks_per_sm, config.lanes_arrive ? "_lanes" : "",
                  config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;

  const auto map_slot = [&](const std::string& name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  // The members that the producer of both templates knows: of the operands, what is kept and what is streamed.
  for (const char* operand : {"k", "v"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_map", operand), operand, config.block_m));
    plan.slots.push_back(map_slot(fmt::format("{}_piece_map", operand), operand, sm90::kPieceRows));
  }
  for (const char* operand : {"q", "dout"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_block_map", operand), operand, config.block_n));
    plan.slots.push_back(map_slot(fmt::format("{}_piece_map", operand), operand, sm90::kPieceRows));
  }
  for (const char* output : {"dk", "dv"})
    plan.slots.push_back(map_slot(fmt::format("{}_map", output), output, sm90::kPieceRows));
  for (ParamSlot& slot : attention_common_slots(op, Direction::kBackward)) plan.slots.push_back(std::move(slot));
  plan.grid = attention_grid(op, config.block_m, Direction::kBackward);
  plan.persistent_blocks = device.sm_count * config.blocks_per_sm;

  // As many groups of rows as q has, the last one rounded up.
  const GridFactor groups = size_factor(signature, "q", kPartLines);
  const GridFactor group_bytes =
      constant_factor(kPartLines * params.heads * params.attn_dim * static_cast<int64_t>(sizeof(float)));
  if (deterministic(config)) {
    add_counter(plan);
    if (config.schedule == "ordered") add_turns(op, signature, plan);
  } else {
    FollowingKernel convert;
    convert.kernel_name = plan.kernel_name + "_convert";
    convert.function = "convert_parts";
    convert.threads = kConvertThreads;
    convert.grid = {groups};
    plan.following.push_back(std::move(convert));
  }
  add_workspace_region("dq_parts", "float*", {{groups, group_bytes}, !deterministic(config)}, plan);
  add_gradient_kernels(op, plan);
  return plan;
}

std::vector<std::pair<std::string, std::string>> FusedBackwardSm90::constants(const OpSpec& spec,
                                                                              const KernelConfig& config) const {
  const FusedResources r(cast(spec), config);
  std::vector<std::pair<std::string, std::string>> constants = {
      {"kThreads", fmt::to_string(r.threads)},
      {"kPieceRows", fmt::to_string(sm90::kPieceRows)},
      {"kPartLines", fmt::to_string(kPartLines)},
      {"kPartGroup", fmt::to_string(kPartGroup)},
      {"kPartColumns", fmt::to_string(r.part_columns)},
      {"kFirstSum", fmt::to_string(r.first_sum)},
      {"kKeptSums", fmt::to_string(r.kept_sums)},
      {"kQkTiles", fmt::to_string(r.qk_tiles)},
      {"kPvTiles", fmt::to_string(r.pv_tiles)},
      {"kKeptStages", fmt::to_string(r.kept_stages)},
      {"kScheduleSequences", fmt::to_string(r.schedule_sequences)},
      {"kPairTiles", r.pair_tiles ? "1" : "0"},
      {"kFirstTileFirst", "0"},
      {"kTilesByPlace", r.tiles_by_place ? "1" : "0"},
      {"kRoles", "1"},
      {"kMaskFirst", r.mask_first ? "1" : "0"},
      {"kStoreWarp", r.kept_stages > 1 ? "1" : "0"},
      {"kSharedBytes", fmt::to_string(r.shared_bytes)},
      {"kProducerRegisters", fmt::to_string(r.producer_registers)},
      {"kConsumerRegisters", fmt::to_string(r.consumer_registers)},
      {"kSplit", "0"}};
  for (auto& constant : attention_constants(cast(spec))) constants.push_back(std::move(constant));
  return constants;
}

std::string FusedBackwardSm90::prelude(const OpSpec& spec, const KernelConfig& config) const {
  const auto& params = cast(spec).params();
  return sm90::print_backward_products(params, config, sm90::Accumulate::kFresh) + "\n" +
         sm90::print_wgmma("PartProduct", {.dtype = params.dtype,
                                           .n = FusedResources(cast(spec), config).part_columns,
                                           .k = config.block_m,
                                           .a = sm90::OperandA::kSharedTransposed,
                                           .accumulate = deterministic(config) ? sm90::Accumulate::kAlways
                                                                               : sm90::Accumulate::kFresh});
}

}  // namespace

const Skeleton& hstu_attention_sm90_backward_fused_skeleton() {
  static const FusedBackwardSm90 skeleton;
  return skeleton;
}

}  // namespace hstujit
