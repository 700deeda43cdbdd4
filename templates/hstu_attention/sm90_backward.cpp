// Host face of sm90_backward.cuh: attention backward for Hopper.
#include <fmt/format.h>

#include <algorithm>

#include "templates/hstu_attention/gradient_kernels.h"
#include "templates/hstu_attention/launch_slots.h"
#include "templates/hstu_attention/sm90_backward_cost.h"
#include "templates/hstu_attention/sm90_backward_resources.h"
#include "templates/hstu_attention/sm90_limits.h"
#include "templates/hstu_attention/sm90_machine.h"
#include "templates/hstu_attention/sm90_wgmma.h"

namespace hstujit {

namespace {

using sm90::backward::Resources;

const AttentionSpec& cast(const OpSpec& spec) { return static_cast<const AttentionSpec&>(spec); }

class BackwardSm90 final : public Skeleton {
 public:
  std::string_view name() const override { return "hstu_attention/sm90_backward"; }
  std::string_view entry_file() const override { return "hstu_attention/sm90_backward.cuh"; }
  std::string_view op() const override { return "hstu_attention"; }
  Direction direction() const override { return Direction::kBackward; }

  std::vector<KernelConfig> space(const OpSpec& spec) const override;
  std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                const DeviceSpec& device) const override;
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override;
  double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                  const ProblemSize& size) const override {
    return sm90::backward::estimate_ms(cast(spec), config, device, size);
  }
  std::vector<std::pair<std::string, std::string>> constants(const OpSpec& spec,
                                                             const KernelConfig& config) const override;
  std::string prelude(const OpSpec& spec, const KernelConfig& config) const override;
};

std::vector<KernelConfig> BackwardSm90::space(const OpSpec& spec) const {
  std::vector<KernelConfig> configs;
  if (cast(spec).params().dtype == DataType::kFp32) return configs;
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
    std::vector<int64_t> block_n;
  };
  const std::vector<Shape> shapes = {{2, 1, {96, 64, 48, 32}}, {1, 2, {64, 48, 32}}, {1, 3, {32}}, {3, 1, {64, 32}}};
  for (const Shape& shape : shapes) {
    for (const int64_t block_n : shape.block_n) {
      for (const int64_t stages : {2, 3, 4, 8}) {
        for (const bool persistent : {true, false}) {
          configs.push_back(sm90::tile_config(name(), shape.consumers, block_n, stages, shape.blocks_per_sm));
          configs.back().schedule = persistent ? "persistent" : "grid";
        }
      }
    }
  }
  return configs;
}

std::vector<Rejection> BackwardSm90::reject(const OpSpec& spec, const KernelConfig& config,
                                            const DeviceSpec& device) const {
  const auto& params = cast(spec).params();
  std::vector<Rejection> reasons =
      sm90::general_rejections(params, config, device, "rows or columns", "grid persistent");
  for (Rejection& reason : sm90::backward_rejections(config)) reasons.push_back(std::move(reason));
  if (!reasons.empty()) return reasons;
  const Resources resources(cast(spec), config);
  reasons = sm90::occupancy_limits(config, resources.threads, resources.shared_bytes, resources.shared_bytes_resident,
                                   device);
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

LaunchPlan BackwardSm90::launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const {
  const auto& op = cast(spec);
  const auto& params = op.params();
  const Resources resources(op, config);
  const Signature signature = spec.signature(Direction::kBackward);

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_backward_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}", attention_kernel_prefix(op),
                  to_string(params.dtype), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.schedule, config.blocks_per_sm, config.lanes_arrive ? "_lanes" : "",
                  config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;

  const auto map_slot = [&](const std::string& name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  // Each operand is kept as a tile by one role and streamed in blocks by the other.
  for (const char* operand : {"q", "k", "v", "dout"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_map", operand), operand, config.block_m));
    plan.slots.push_back(map_slot(fmt::format("{}_block_map", operand), operand, config.block_n));
    plan.slots.push_back(map_slot(fmt::format("{}_piece_map", operand), operand, sm90::kPieceRows));
  }
  for (const char* output : {"dq", "dk", "dv"})
    plan.slots.push_back(map_slot(fmt::format("{}_map", output), output, sm90::kPieceRows));
  for (ParamSlot& slot : attention_common_slots(op, Direction::kBackward)) plan.slots.push_back(std::move(slot));

  plan.grid = attention_grid(op, config.block_m, Direction::kBackward);
  GridFactor roles;  // of a tile
  roles.constant = resources.split_columns ? 3 : 2;
  plan.grid.push_back(roles);
  if (config.schedule == "persistent") plan.persistent_blocks = device.sm_count * config.blocks_per_sm;
  add_gradient_kernels(op, plan);
  return plan;
}

std::vector<std::pair<std::string, std::string>> BackwardSm90::constants(const OpSpec& spec,
                                                                         const KernelConfig& config) const {
  const Resources r(cast(spec), config);
  std::vector<std::pair<std::string, std::string>> constants = {
      {"kThreads", fmt::to_string(r.threads)},
      {"kPieceRows", fmt::to_string(sm90::kPieceRows)},
      {"kQkTiles", fmt::to_string(r.qk_tiles)},
      {"kPvTiles", fmt::to_string(r.pv_tiles)},
      {"kKeptStages", fmt::to_string(r.kept_stages)},
      {"kScheduleSequences", fmt::to_string(r.schedule_sequences)},
      {"kPairTiles", r.pair_tiles ? "1" : "0"},
      {"kFirstTileFirst", "0"},
      {"kRoles", r.split_columns ? "3" : "2"},
      {"kStoreWarp", "0"},
      {"kSharedBytes", fmt::to_string(r.shared_bytes)},
      {"kProducerRegisters", fmt::to_string(r.producer_registers)},
      {"kConsumerRegisters", fmt::to_string(r.consumer_registers)},
      {"kOverlapRows", r.overlap_rows ? "1" : "0"},
      {"kOverlapColumns", r.overlap_columns ? "1" : "0"},
      {"kSplit", "0"}};
  for (auto& constant : attention_constants(cast(spec))) constants.push_back(std::move(constant));
  return constants;
}

std::string BackwardSm90::prelude(const OpSpec& spec, const KernelConfig& config) const {
  const auto& params = cast(spec).params();
  return sm90::print_backward_products(params, config, sm90::Accumulate::kNever);
}

}  // namespace

const Skeleton& hstu_attention_sm90_backward_skeleton() {
  static const BackwardSm90 skeleton;
  return skeleton;
}

}  // namespace hstujit
