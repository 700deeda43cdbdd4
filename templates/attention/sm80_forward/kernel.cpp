// Host side of sm80_forward: attention forward for Ampere and Ada, and on Hopper for short sequences and fp32.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/plan/typed_skeleton.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/attention/sm80/limits.h"
#include "templates/attention/sm80/per_sequence_space.h"
#include "templates/attention/sm80_forward/cost.h"
#include "templates/attention/sm80_forward/resources.h"

namespace hstujit {

namespace {

using sm80::Resources;

struct Sm80Forward {
  using Spec = AttentionSpec;
  using Config = AttentionConfig;
  static constexpr std::string_view kName = "attention/sm80_forward";
  static constexpr Direction kDirection = Direction::kForward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size);
  static Constants constants(const Spec& spec, const Config& config);
};

std::vector<AttentionConfig> Sm80Forward::space(const Spec& spec) {
  const auto& params = spec.params();
  std::vector<AttentionConfig> configs;
  // 16 columns are for wide rows of fp32, of which no more fit into the shared memory of an Ada CTA.
  constexpr int64_t kColumns[] = {64, 32, 128, 16};
  const auto columns = std::span(kColumns).first(params.dtype == DataType::kFp32 ? 4 : 3);
  for (const int64_t block_m : {64, 128}) {
    for (const int64_t warps : {4, 8}) {
      for (const int64_t block_n : columns) {
        for (const int64_t stages : {2, 3, 1}) {
          for (const int64_t blocks_per_sm : {2, 1, 3}) {
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
  for (AttentionConfig& config : sm80::per_sequence_space(params, {16, 32})) configs.push_back(std::move(config));
  return configs;
}

std::vector<Rejection> Sm80Forward::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  std::vector<Rejection> reasons = sm80::general_rejections(spec, config, device);
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

  // One CTA more at the same price: that config compiles to the same code and is the better one.
  AttentionConfig denser = config;
  denser.blocks_per_sm += 1;
  if (Resources(params, denser).register_cap == resources.register_cap && limits_of(denser.blocks_per_sm).empty()) {
    reasons.push_back({"occupancy", fmt::format("{} CTAs fit on a multiprocessor with the same {} registers a thread",
                                                denser.blocks_per_sm, resources.register_cap)});
  }
  return reasons;
}

LaunchPlan Sm80Forward::launch_plan(const Spec& spec, const Config& config, const DeviceSpec&) {
  const auto& params = spec.params();
  const Resources resources(params, config);
  const Signature signature = spec.signature(Direction::kForward);
  const bool per_sequence = config.schedule == "per_sequence";

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_forward_sm80_{}_qk{}_v{}_m{}_n{}_s{}_w{}_b{}{}", attention_kernel_prefix(spec),
                  sm80::product_name(params), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.warps, config.blocks_per_sm, per_sequence ? "_per_sequence" : "");
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
  for (const char* tensor : {"q", "k", "v"}) {
    const char* type = params.dtype == DataType::kFp32 ? "const float*" : "const u16*";
    for (ParamSlot& slot : attention_tensor_slots(signature, tensor, type)) plan.slots.push_back(std::move(slot));
  }
  for (ParamSlot& slot : attention_common_slots(spec)) plan.slots.push_back(std::move(slot));
  plan.grid = per_sequence ? sequence_grid(spec, kDirection) : attention_grid(spec, config.block_m);
  return plan;
}

double Sm80Forward::estimate(const Spec& spec, const Config& config, const DeviceSpec& device,
                             const ProblemSize& size) {
  return sm80::estimate_ms(spec, config, device, size);
}

Constants Sm80Forward::constants(const Spec& spec, const Config& config) {
  Constants constants = constants_of(Resources(spec.params(), config));
  for (auto& constant : attention_constants(spec)) constants.push_back(std::move(constant));
  return constants;
}

}  // namespace

const Skeleton& attention_sm80_forward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<Sm80Forward>;
  return skeleton;
}

const SkeletonSource& attention_sm80_forward_source() {
  static const TypedSource<Sm80Forward> source;
  return source;
}

}  // namespace hstujit
