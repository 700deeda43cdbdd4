// Host face of sm80_backward.cuh: attention backward for Ampere and Ada, and for what Hopper's template leaves.
#include <fmt/format.h>

#include "templates/hstu_attention/gradient_kernels.h"
#include "templates/hstu_attention/launch_slots.h"
#include "templates/hstu_attention/sm80_backward_cost.h"
#include "templates/hstu_attention/sm80_backward_resources.h"
#include "templates/hstu_attention/sm80_limits.h"
#include "templates/hstu_attention/sm80_resources.h"

namespace hstujit {

namespace {

using sm80::BackwardResources;

const AttentionSpec& cast(const OpSpec& spec) { return static_cast<const AttentionSpec&>(spec); }

class AttentionSm80Backward final : public Skeleton {
 public:
  std::string_view name() const override { return "hstu_attention/sm80_backward"; }
  std::string_view entry_file() const override { return "hstu_attention/sm80_backward.cuh"; }
  std::string_view op() const override { return "hstu_attention"; }
  Direction direction() const override { return Direction::kBackward; }

  std::vector<KernelConfig> space(const OpSpec& spec) const override;
  std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                const DeviceSpec& device) const override;
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override;
  double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                  const ProblemSize& size) const override {
    return sm80::backward_estimate_ms(cast(spec), config, device, size);
  }
  std::vector<std::pair<std::string, std::string>> constants(const OpSpec& spec,
                                                             const KernelConfig& config) const override;
  std::string prelude(const OpSpec&, const KernelConfig&) const override { return {}; }
};

std::vector<KernelConfig> AttentionSm80Backward::space(const OpSpec& spec) const {
  const auto& params = cast(spec).params();
  std::vector<KernelConfig> configs;
  for (const int64_t block_m : {64, 128, 32}) {
    for (const int64_t warps : {4, 8, 2}) {
      for (const int64_t block_n : {64, 32, 16}) {
        for (const int64_t stages : {2, 1}) {
          for (const int64_t blocks_per_sm : {1, 2, 3}) {
            KernelConfig config;
            config.skeleton = name();
            config.block_m = block_m;
            config.block_n = block_n;
            config.stages = stages;
            config.warps = warps;
            config.blocks_per_sm = blocks_per_sm;
            config.activation = sm80::is_ieee(params) ? "accurate" : "mufu";
            if (sm80::well_formed(config)) configs.push_back(std::move(config));
          }
        }
      }
    }
  }
  return configs;
}

std::vector<Rejection> AttentionSm80Backward::reject(const OpSpec& spec, const KernelConfig& config,
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
  const BackwardResources resources(params, config);
  for (Rejection& limit :
       sm80::occupancy_limits(resources.threads, resources.shared_bytes, config.blocks_per_sm, device)) {
    reasons.push_back(std::move(limit));
  }
  if (resources.registers_needed > resources.register_cap) {
    reasons.push_back({"registers", fmt::format("a thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.register_cap)});
  }
  return reasons;
}

LaunchPlan AttentionSm80Backward::launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec&) const {
  const auto& op = cast(spec);
  const auto& params = op.params();
  const BackwardResources resources(params, config);
  const Signature signature = spec.signature(Direction::kBackward);

  LaunchPlan plan;
  plan.kernel_name = fmt::format("{}_backward_sm80_{}_qk{}_v{}_m{}_n{}_s{}_w{}_b{}", attention_kernel_prefix(op),
                                 sm80::product_name(params), params.attn_dim, params.hidden_dim, config.block_m,
                                 config.block_n, config.stages, config.warps, config.blocks_per_sm);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  const char* type = params.dtype == DataType::kFp32 ? "const float*" : "const u16*";
  for (const char* tensor : {"q", "k", "v", "dout"}) {
    for (ParamSlot& slot : attention_tensor_slots(signature, tensor, type)) plan.slots.push_back(std::move(slot));
  }
  for (ParamSlot& slot : attention_common_slots(op, Direction::kBackward)) plan.slots.push_back(std::move(slot));
  plan.grid = attention_grid(op, config.block_m, Direction::kBackward);
  GridFactor parts;
  parts.constant = resources.parts;
  plan.grid.push_back(parts);
  add_gradient_kernels(op, plan);
  return plan;
}

std::vector<std::pair<std::string, std::string>> AttentionSm80Backward::constants(const OpSpec& spec,
                                                                                  const KernelConfig& config) const {
  const BackwardResources resources(cast(spec).params(), config);
  std::vector<std::pair<std::string, std::string>> constants = {
      {"kThreads", fmt::to_string(resources.threads)},
      {"kChunkColumns", fmt::to_string(resources.chunk_columns)},
      {"kQueryInRegisters", fmt::to_string(resources.own_in_registers ? 1 : 0)},
      {"kParts", fmt::to_string(resources.parts)},
      {"kSharedBytes", fmt::to_string(resources.shared_bytes)}};
  for (auto& constant : attention_constants(cast(spec))) constants.push_back(std::move(constant));
  return constants;
}

}  // namespace

const Skeleton& hstu_attention_sm80_backward_skeleton() {
  static const AttentionSm80Backward skeleton;
  return skeleton;
}

}  // namespace hstujit
