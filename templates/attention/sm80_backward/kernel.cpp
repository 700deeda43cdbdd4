// Host side of sm80_backward: attention backward for Ampere and Ada, and on Hopper for short sequences and fp32.
#include <fmt/format.h>

#include "compiler/plan/typed_skeleton.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/attention/operands/gradients/following_kernels.h"
#include "templates/attention/sm80/limits.h"
#include "templates/attention/sm80/per_sequence_space.h"
#include "templates/attention/sm80_backward/cost.h"
#include "templates/attention/sm80_backward/resources.h"
#include "templates/attention/sm80_forward/resources.h"

namespace hstujit {

namespace {

using sm80::BackwardResources;

struct Sm80Backward {
  using Spec = AttentionSpec;
  using Config = AttentionConfig;
  static constexpr std::string_view kName = "attention/sm80_backward";
  static constexpr Direction kDirection = Direction::kBackward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size) {
    return sm80::backward_estimate_ms(spec, config, device, size);
  }
  static Constants constants(const Spec& spec, const Config& config);
};

std::vector<AttentionConfig> Sm80Backward::space(const Spec& spec) {
  const auto& params = spec.params();
  std::vector<AttentionConfig> configs;
  for (const int64_t block_m : {64, 128, 32}) {
    for (const int64_t warps : {4, 8, 2}) {
      for (const int64_t block_n : {64, 32, 16}) {
        for (const int64_t stages : {2, 1}) {
          for (const int64_t blocks_per_sm : {1, 2, 3}) {
            AttentionConfig config;
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
  for (AttentionConfig& config : sm80::per_sequence_space(params, {16})) configs.push_back(std::move(config));
  return configs;
}

std::vector<Rejection> Sm80Backward::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  std::vector<Rejection> reasons = sm80::general_rejections(spec, config, device);
  for (Rejection& reason : gradient_rejections(spec, device)) reasons.push_back(std::move(reason));
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
  // Found by compiling: statistics of rows spill where many threads are resident, whatever the estimate.
  constexpr int64_t kSoftmaxRegisters = 200;
  if (spec.params().has_softmax() && config.schedule == "per_sequence" && resources.register_cap < kSoftmaxRegisters) {
    reasons.push_back({"registers", fmt::format("a thread of a CTA with a sequence needs {} registers for rows of "
                                                "softmax and gets {}",
                                                kSoftmaxRegisters, resources.register_cap)});
  }
  if (resources.registers_needed > resources.register_cap) {
    reasons.push_back({"registers", fmt::format("a thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.register_cap)});
  }
  return reasons;
}

LaunchPlan Sm80Backward::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  const BackwardResources resources(params, config);
  const Signature signature = spec.signature(Direction::kBackward);
  const bool per_sequence = config.schedule == "per_sequence";

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_backward_sm80_{}_qk{}_v{}_m{}_n{}_s{}_w{}_b{}{}", attention_kernel_prefix(spec),
                  sm80::product_name(params), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.warps, config.blocks_per_sm, per_sequence ? "_per_sequence" : "");
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
  const char* type = params.dtype == DataType::kFp32 ? "const float*" : "const u16*";
  for (const char* tensor : {"q", "k", "v", "dout"}) {
    for (ParamSlot& slot : attention_tensor_slots(signature, tensor, type)) plan.slots.push_back(std::move(slot));
  }
  for (ParamSlot& slot : attention_common_slots(spec, Direction::kBackward)) plan.slots.push_back(std::move(slot));
  plan.grid = per_sequence ? sequence_grid(spec, kDirection) : attention_grid(spec, config.block_m, kDirection);
  GridFactor roles;
  roles.constant = resources.roles;
  plan.grid.push_back(roles);
  add_softmax_rows(spec, plan);
  add_gradient_kernels(spec, device, {}, plan);
  return plan;
}

Constants Sm80Backward::constants(const Spec& spec, const Config& config) {
  Constants constants = constants_of(BackwardResources(spec.params(), config));
  for (auto& constant : attention_constants(spec)) constants.push_back(std::move(constant));
  return constants;
}

}  // namespace

const Skeleton& attention_sm80_backward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<Sm80Backward>;
  return skeleton;
}

const SkeletonSource& attention_sm80_backward_source() {
  static const TypedSource<Sm80Backward> source;
  return source;
}

}  // namespace hstujit
