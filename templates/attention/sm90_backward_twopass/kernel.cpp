// Host side of sm90_backward_twopass: attention backward for Hopper.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/typed_skeleton.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/attention/operands/gradients/following_kernels.h"
#include "templates/attention/sm90/limits.h"
#include "templates/attention/sm90_backward/bias_gradient.h"
#include "templates/attention/sm90_backward_twopass/cost.h"
#include "templates/attention/sm90_backward_twopass/resources.h"
#include "templates/common/sm90/machine.h"
#include "templates/common/sm90/wgmma_printer.h"

namespace hstujit {

namespace {

using sm90::backward::Resources;

struct Sm90BackwardTwopass {
  using Spec = AttentionSpec;
  using Config = AttentionConfig;
  static constexpr std::string_view kName = "attention/sm90_backward_twopass";
  static constexpr Direction kDirection = Direction::kBackward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size) {
    return sm90::backward::estimate_ms(spec, config, device, size);
  }
  static Constants constants(const Spec& spec, const Config& config);
  static std::string instruction_wrappers(const Spec& spec, const Config& config);
};

std::vector<AttentionConfig> Sm90BackwardTwopass::space(const Spec&) {
  std::vector<AttentionConfig> configs;
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
    std::vector<int64_t> block_n;
  };
  const std::vector<Shape> shapes = {
      {2, 1, {96, 64, 48, 32}}, {1, 2, {64, 48, 32}}, {1, 3, {32}}, {1, 4, {32}}, {3, 1, {64, 32}}};
  for (const Shape& shape : shapes) {
    for (const int64_t block_n : shape.block_n) {
      for (const int64_t stages : {2, 3, 4, 8}) {
        for (const bool persistent : {true, false}) {
          configs.push_back(sm90::tile_config(shape.consumers, block_n, stages, shape.blocks_per_sm));
          configs.back().schedule = persistent ? "persistent" : "grid";
          if (!persistent || shape.consumers != 1 || stages > 4) continue;
          configs.push_back(configs.back());
          configs.back().pack_sequences = true;
        }
      }
    }
  }
  return configs;
}

std::vector<Rejection> Sm90BackwardTwopass::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  std::vector<Rejection> reasons =
      sm90::general_rejections(params, config, device, "rows or columns", "grid persistent");
  for (Rejection& reason : sm90::backward_rejections(config)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::query_row_rejections(spec)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::packed_rejections(spec, config)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::site_warp_rejections(config)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::interval_softmax_rejections(params)) reasons.push_back(std::move(reason));
  for (Rejection& reason : gradient_rejections(spec, device)) reasons.push_back(std::move(reason));
  if (config.pack_sequences && config.schedule != "persistent") {
    reasons.push_back({"pack_sequences", fmt::format("pack_sequences with schedule {}; allowed: with persistent, whose "
                                                     "CTAs have tiles of each role",
                                                     config.schedule)});
  }
  if (!reasons.empty()) return reasons;
  const Resources resources(spec, config);
  reasons = sm90::occupancy_limits(config, resources.threads, resources.shared_bytes, resources.shared_bytes_resident,
                                   device);
  for (Rejection& reason :
       sm90::sort_limits(config, resources.threads, resources.schedule_sequences, resources.qk_tiles))
    reasons.push_back(std::move(reason));
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back(
        {"registers",
         fmt::format("a consumer thread needs about {} registers, with sums of {} and {} columns for 64 "
                     "rows, and gets {}",
                     resources.registers_needed, params.attn_dim, params.hidden_dim, resources.consumer_registers)});
  }
  if (resources.product_registers > resources.launch_registers) {
    reasons.push_back({"registers", fmt::format("a product of {} columns takes {} registers, and threads start with {}",
                                                std::max(params.attn_dim, params.hidden_dim),
                                                resources.product_registers, resources.launch_registers)});
  }
  return reasons;
}

LaunchPlan Sm90BackwardTwopass::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  const Resources resources(spec, config);
  const Signature signature = spec.signature(Direction::kBackward);

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_backward_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}", attention_kernel_prefix(spec),
                  to_string(params.dtype), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.schedule, config.blocks_per_sm, config.pack_sequences ? "_packed" : "",
                  config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);

  const auto map_slot = [&](const std::string& name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  // Each operand is the stationary tile of one role and the moving tile of the other.
  for (const char* operand : {"q", "k", "v", "dout"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_map", operand), operand, config.block_m));
    plan.slots.push_back(map_slot(fmt::format("{}_moving_map", operand), operand, config.block_n));
    plan.slots.push_back(map_slot(fmt::format("{}_tail_map", operand), operand, sm90::kTailBoxRows));
  }
  for (const char* output : {"dq", "dk", "dv"})
    plan.slots.push_back(map_slot(fmt::format("{}_map", output), output, sm90::kTailBoxRows));
  for (ParamSlot& slot : attention_common_slots(spec, Direction::kBackward)) plan.slots.push_back(std::move(slot));

  if (config.pack_sequences) {
    for (const char* operand : {"q", "k", "dout"}) {
      for (ParamSlot& slot : attention_tensor_slots(signature, operand, "const u16*"))
        plan.slots.push_back(std::move(slot));
    }
    plan.grid = packed_attention_grid(spec, config.block_m, Direction::kBackward);
  } else {
    plan.grid = attention_grid(spec, config.block_m, Direction::kBackward);
  }
  GridFactor roles;  // of a tile
  roles.constant = resources.roles;
  plan.grid.push_back(roles);
  if (config.schedule == "persistent") plan.persistent_blocks = device.sm_count * config.blocks_per_sm;
  add_softmax_rows(spec, plan);
  sm90::backward::add_bias_gradient(spec, plan);
  add_gradient_kernels(spec, device, {.bias = sm90::backward::has_bias_gradient(params)}, plan);
  add_interval_bounds(spec, config.block_n, plan);
  return plan;
}

Constants Sm90BackwardTwopass::constants(const Spec& spec, const Config& config) {
  Constants constants = constants_of(Resources(spec, config));
  sm90::backward::add_bias_gradient_constants(spec, constants);
  for (auto& constant : attention_constants(spec)) constants.push_back(std::move(constant));
  return constants;
}

std::string Sm90BackwardTwopass::instruction_wrappers(const Spec& spec, const Config& config) {
  const auto& params = spec.params();
  return sm90::print_backward_products(params, config, sm90::Accumulate::kNever, sm90::Accumulate::kNever) + "\n" +
         sm90::backward::print_pair_products(params);
}

}  // namespace

const Skeleton& attention_sm90_backward_twopass_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<Sm90BackwardTwopass>;
  return skeleton;
}

const SkeletonSource& attention_sm90_backward_twopass_source() {
  static const TypedSource<Sm90BackwardTwopass> source;
  return source;
}

}  // namespace hstujit
