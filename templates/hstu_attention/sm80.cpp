// Host face of sm80.cuh: attention forward for Ampere and Ada, and a second opinion on Hopper.
#include <fmt/format.h>

#include <algorithm>

#include "templates/hstu_attention/launch_slots.h"
#include "templates/hstu_attention/skeletons.h"
#include "templates/hstu_attention/sm80_cost.h"
#include "templates/hstu_attention/sm80_limits.h"
#include "templates/hstu_attention/sm80_resources.h"

namespace hstujit {

namespace {

using sm80::Resources;

const AttentionSpec& cast(const OpSpec& spec) { return static_cast<const AttentionSpec&>(spec); }

class AttentionSm80 final : public Skeleton {
 public:
  explicit AttentionSm80(std::string_view op)
      : op_(op), name_(fmt::format("{}/sm80", op)), entry_file_(fmt::format("{}/sm80.cuh", op)) {}

  std::string_view name() const override { return name_; }
  std::string_view entry_file() const override { return entry_file_; }
  std::string_view op() const override { return op_; }
  Direction direction() const override { return Direction::kForward; }

  std::vector<KernelConfig> space(const OpSpec& spec) const override;
  std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                const DeviceSpec& device) const override;
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override;
  double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                  const ProblemSize& size) const override;
  std::vector<std::pair<std::string, std::string>> constants(const OpSpec& spec,
                                                             const KernelConfig& config) const override;
  std::string prelude(const OpSpec&, const KernelConfig&) const override { return {}; }

 private:
  std::string op_, name_, entry_file_;
};

std::vector<KernelConfig> AttentionSm80::space(const OpSpec& spec) const {
  const auto& params = cast(spec).params();
  std::vector<KernelConfig> configs;
  for (const int64_t block_m : {64, 128}) {
    for (const int64_t warps : {4, 8}) {
      for (const int64_t block_n : {64, 32, 128, 16}) {
        // 16 columns are for wide rows of fp32, of which no more fit into the shared memory of an Ada block.
        if (block_n == 16 && params.dtype != DataType::kFp32) continue;
        for (const int64_t stages : {2, 3, 1}) {
          for (const int64_t blocks_per_sm : {2, 1, 3}) {
            KernelConfig config;
            config.skeleton = name();
            config.block_m = block_m;
            config.block_n = block_n;
            config.stages = stages;
            config.warps = warps;
            config.blocks_per_sm = blocks_per_sm;
            config.activation = sm80::is_ieee(params) ? "accurate" : "mufu";
            configs.push_back(std::move(config));
          }
        }
      }
    }
  }
  return configs;
}

std::vector<Rejection> AttentionSm80::reject(const OpSpec& spec, const KernelConfig& config,
                                             const DeviceSpec& device) const {
  const auto& params = cast(spec).params();
  std::vector<Rejection> reasons = sm80::general_rejections(params, config, device);
  if (!sm80::well_formed(config)) {
    reasons.push_back(
        {"tile",
         fmt::format("{} rows over {} warps: a warp owns 16 or 32 rows, and block_n ({}) must be a multiple of 16",
                     config.block_m, config.warps, config.block_n)});
    return reasons;
  }

  const Resources resources(params, config);
  const auto limits_of = [&](int64_t blocks) {
    return sm80::occupancy_limits(resources.threads, resources.shared_bytes, blocks, device);
  };
  const std::vector<Rejection> limits = limits_of(config.blocks_per_sm);
  reasons.insert(reasons.end(), limits.begin(), limits.end());
  if (resources.registers_needed > resources.register_cap) {
    reasons.push_back({"registers", fmt::format("a thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.register_cap)});
  }
  if (!reasons.empty()) return reasons;

  // One block more at the same price: that config compiles to the same code and is the better one.
  KernelConfig denser = config;
  denser.blocks_per_sm += 1;
  if (Resources(params, denser).register_cap == resources.register_cap && limits_of(denser.blocks_per_sm).empty()) {
    reasons.push_back({"occupancy", fmt::format("{} blocks fit on a multiprocessor with the same {} registers a thread",
                                                denser.blocks_per_sm, resources.register_cap)});
  }
  return reasons;
}

LaunchPlan AttentionSm80::launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec&) const {
  const auto& op = cast(spec);
  const auto& params = op.params();
  const Resources resources(params, config);
  const Signature signature = spec.signature(Direction::kForward);

  LaunchPlan plan;
  plan.kernel_name = fmt::format("{}_forward_sm80_{}_qk{}_v{}_m{}_n{}_s{}_w{}_b{}", attention_kernel_prefix(op),
                                 sm80::product_name(params), params.attn_dim, params.hidden_dim, config.block_m,
                                 config.block_n, config.stages, config.warps, config.blocks_per_sm);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  for (const char* tensor : {"q", "k", "v"}) {
    const char* type = params.dtype == DataType::kFp32 ? "const float*" : "const u16*";
    for (ParamSlot& slot : attention_tensor_slots(signature, tensor, type)) plan.slots.push_back(std::move(slot));
  }
  for (ParamSlot& slot : attention_common_slots(op)) plan.slots.push_back(std::move(slot));
  plan.grid = attention_grid(op, config.block_m);
  return plan;
}

double AttentionSm80::estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                               const ProblemSize& size) const {
  return sm80::estimate_ms(cast(spec), config, device, size);
}

std::vector<std::pair<std::string, std::string>> AttentionSm80::constants(const OpSpec& spec,
                                                                          const KernelConfig& config) const {
  const Resources resources(cast(spec).params(), config);
  std::vector<std::pair<std::string, std::string>> constants = {
      {"kThreads", fmt::to_string(resources.threads)},
      {"kChunkColumns", fmt::to_string(resources.chunk_columns)},
      {"kQueryInRegisters", fmt::to_string(resources.query_in_registers ? 1 : 0)},
      {"kSharedBytes", fmt::to_string(resources.shared_bytes)}};
  for (auto& constant : attention_constants(cast(spec))) constants.push_back(std::move(constant));
  return constants;
}

}  // namespace

std::unique_ptr<Skeleton> make_attention_sm80(std::string_view op) { return std::make_unique<AttentionSm80>(op); }

const Skeleton& hstu_attention_sm80_skeleton() {
  static const auto skeleton = make_attention_sm80("hstu_attention");
  return *skeleton;
}

}  // namespace hstujit
