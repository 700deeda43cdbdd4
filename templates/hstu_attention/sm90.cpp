// Host face of sm90.cuh: attention forward for Hopper.
#include <fmt/format.h>

#include "templates/hstu_attention/launch_slots.h"
#include "templates/hstu_attention/skeletons.h"
#include "templates/hstu_attention/sm90_cost.h"
#include "templates/hstu_attention/sm90_delta_cost.h"
#include "templates/hstu_attention/sm90_limits.h"
#include "templates/hstu_attention/sm90_machine.h"
#include "templates/hstu_attention/sm90_resources.h"
#include "templates/hstu_attention/sm90_small_cost.h"
#include "templates/hstu_attention/sm90_wgmma.h"

namespace hstujit {

namespace {

using sm90::Resources;

const AttentionSpec& cast(const OpSpec& spec) { return static_cast<const AttentionSpec&>(spec); }

class AttentionSm90 final : public Skeleton {
 public:
  explicit AttentionSm90(std::string_view op)
      : op_(op), name_(fmt::format("{}/sm90", op)), entry_file_(fmt::format("{}/sm90.cuh", op)) {}

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
  std::string prelude(const OpSpec& spec, const KernelConfig& config) const override;

 private:
  std::string op_, name_, entry_file_;
};

std::vector<KernelConfig> AttentionSm90::space(const OpSpec& spec) const {
  std::vector<KernelConfig> configs;
  if (cast(spec).params().dtype == DataType::kFp32) return configs;
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
    std::vector<int64_t> block_n;
  };
  const bool delta = cast(spec).query_rows() != QueryRows::kAll;
  const std::vector<Shape> shapes = {{2, 1, {128, 96, 64}}, {1, 2, {128, 80, 64}}, {1, 3, {64}}, {3, 1, {96, 80, 64}}};
  // Few rows over long histories: what counts is how much of k and v is on its way at a time.
  const std::vector<Shape> delta_shapes = {{1, 1, {128, 64}}, {1, 2, {128, 64}}, {1, 3, {64}}, {2, 1, {128, 64}}};
  for (const Shape& shape : delta ? delta_shapes : shapes) {
    for (const int64_t block_n : shape.block_n) {
      for (const int64_t stages : delta ? std::vector<int64_t>{2, 3, 4, 6} : std::vector<int64_t>{2, 3, 4}) {
        for (const bool persistent : {true, false}) {
          if (persistent && delta) continue;
          for (const bool ping_pong : {false, true}) {
            if (ping_pong && shape.consumers == 1) continue;
            KernelConfig config = sm90::tile_config(name(), shape.consumers, block_n, stages, shape.blocks_per_sm);
            config.schedule = persistent ? "persistent" : "grid";
            config.ping_pong = ping_pong;
            configs.push_back(std::move(config));
          }
        }
      }
    }
  }
  if (delta) return configs;
  for (const int64_t blocks_per_sm : {1, 2, 3}) {
    for (const int64_t block_n : {64, 128}) {
      for (const int64_t stages : {2, 3, 4}) {
        configs.push_back(sm90::tile_config(name(), 1, block_n, stages, blocks_per_sm));
        configs.back().share_columns = true;
      }
    }
  }
  return configs;
}

std::vector<Rejection> AttentionSm90::reject(const OpSpec& spec, const KernelConfig& config,
                                             const DeviceSpec& device) const {
  std::vector<Rejection> reasons =
      sm90::general_rejections(cast(spec).params(), config, device, "rows", "grid persistent");
  if (config.schedule == "persistent" && cast(spec).query_rows() != QueryRows::kAll) {
    reasons.push_back(
        {"schedule", fmt::format("schedule persistent sorts sequences by their rows in q, which {} has few "
                                 "of; allowed: grid",
                                 op_)});
  }
  if (config.ping_pong && config.consumers < 2) {
    reasons.push_back({"ping_pong", "products in turns need two consumers"});
  }
  if (config.share_columns) {
    if (cast(spec).query_rows() != QueryRows::kAll) {
      reasons.push_back(
          {"share_columns", fmt::format("share_columns true; allowed: false, {} shares out the columns of "
                                        "every tile of one consumer",
                                        op_)});
    } else if (config.consumers != 1 || config.schedule != "grid") {
      reasons.push_back(
          {"share_columns", fmt::format("share_columns with {} consumers and schedule {}; allowed: with 1 "
                                        "consumer and schedule grid",
                                        config.consumers, config.schedule)});
    }
  }
  if (!reasons.empty()) return reasons;
  const Resources resources(cast(spec), config);
  if (config.share_columns && !resources.part_fits) {
    reasons.push_back(
        {"share_columns", fmt::format("the sums of {} rows and {} columns do not fit where {} stages of {} "
                                      "columns of k and v were",
                                      config.block_m, cast(spec).params().hidden_dim, config.stages, config.block_n)});
    return reasons;
  }
  reasons = sm90::occupancy_limits(config, resources.threads, resources.shared_bytes, resources.shared_bytes_resident,
                                   device);
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back({"registers", fmt::format("a consumer thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.consumer_registers)});
  }
  return reasons;
}

LaunchPlan AttentionSm90::launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const {
  const auto& op = cast(spec);
  const auto& params = op.params();
  const Resources resources(op, config);
  const Signature signature = spec.signature(Direction::kForward);

  LaunchPlan plan;
  plan.kernel_name = fmt::format(
      "{}_forward_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}{}{}", attention_kernel_prefix(op), to_string(params.dtype),
      params.attn_dim, params.hidden_dim, config.block_m, config.block_n, config.stages, config.schedule,
      config.blocks_per_sm, config.ping_pong ? "_turns" : "", config.share_columns ? "_shared" : "",
      config.lanes_arrive ? "_lanes" : "", config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  const auto map_slot = [&](const char* name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  plan.slots = {map_slot("q_map", "q", config.block_m),         map_slot("k_map", "k", config.block_n),
                map_slot("v_map", "v", config.block_n),         map_slot("q_piece_map", "q", sm90::kPieceRows),
                map_slot("k_piece_map", "k", sm90::kPieceRows), map_slot("v_piece_map", "v", sm90::kPieceRows)};
  if (resources.pv_tiles <= resources.qk_tiles) plan.slots.push_back(map_slot("out_map", "out", sm90::kPieceRows));
  for (ParamSlot& slot : attention_common_slots(op)) plan.slots.push_back(std::move(slot));
  plan.grid = attention_grid(op, config.block_m);
  if (resources.split) {
    plan.cluster = {.most = sm90::kMostSharers,
                    .argument = find_argument(signature, "max_seq_len"),
                    .least = sm90::kLeastShare * config.block_n};
  }
  if (config.schedule == "persistent") plan.persistent_blocks = device.sm_count * config.blocks_per_sm;
  return plan;
}

double AttentionSm90::estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                               const ProblemSize& size) const {
  if (cast(spec).query_rows() != QueryRows::kAll) return sm90::delta_estimate_ms(cast(spec), config, device, size);
  if (size.small_batch) return sm90::small_batch_estimate_ms(cast(spec), config, device, size);
  // Clusters have nothing to share out where tiles are many; no tuning run is to time what is then another grid.
  constexpr double kNothingToShare = 4;
  return sm90::estimate_ms(cast(spec), config, device, size) * (config.share_columns ? kNothingToShare : 1);
}

std::vector<std::pair<std::string, std::string>> AttentionSm90::constants(const OpSpec& spec,
                                                                          const KernelConfig& config) const {
  const Resources r(cast(spec), config);
  std::vector<std::pair<std::string, std::string>> constants = {
      {"kThreads", fmt::to_string(r.threads)},
      {"kPieceRows", fmt::to_string(sm90::kPieceRows)},
      {"kQkTiles", fmt::to_string(r.qk_tiles)},
      {"kPvTiles", fmt::to_string(r.pv_tiles)},
      {"kQueryStages", fmt::to_string(r.query_stages)},
      {"kScheduleSequences", fmt::to_string(r.schedule_sequences)},
      {"kPairTiles", fmt::to_string(r.pair_tiles ? 1 : 0)},
      {"kFirstTileFirst", fmt::to_string(r.first_tile_first ? 1 : 0)},
      {"kMaskInPieces", fmt::to_string(r.mask_in_pieces ? 1 : 0)},
      {"kBiasAhead", fmt::to_string(r.bias_ahead ? 1 : 0)},
      {"kSharedBytes", fmt::to_string(r.shared_bytes)},
      {"kProducerRegisters", fmt::to_string(r.producer_registers)},
      {"kConsumerRegisters", fmt::to_string(r.consumer_registers)},
      {"kSplit", r.split ? "1" : "0"}};
  for (auto& constant : attention_constants(cast(spec))) constants.push_back(std::move(constant));
  return constants;
}

std::string AttentionSm90::prelude(const OpSpec& spec, const KernelConfig& config) const {
  const auto& params = cast(spec).params();
  const bool in_pieces = Resources(cast(spec), config).mask_in_pieces;
  return sm90::print_wgmma("QkProduct",
                           {.dtype = params.dtype,
                            .n = config.block_n,
                            .k = params.attn_dim,
                            .a = sm90::OperandA::kShared,
                            .a_rows = config.block_m,
                            .transpose_b = false,
                            .b_rows = config.block_n,
                            .accumulate = in_pieces ? sm90::Accumulate::kFresh : sm90::Accumulate::kNever}) +
         "\n" +
         sm90::print_wgmma("PvProduct", {.dtype = params.dtype,
                                         .n = params.hidden_dim,
                                         .k = config.block_n,
                                         .a = sm90::OperandA::kRegisters,
                                         .accumulate = sm90::Accumulate::kArgument});
}

}  // namespace

std::unique_ptr<Skeleton> make_attention_sm90(std::string_view op) { return std::make_unique<AttentionSm90>(op); }

const Skeleton& hstu_attention_sm90_skeleton() {
  static const auto skeleton = make_attention_sm90("hstu_attention");
  return *skeleton;
}

}  // namespace hstujit
