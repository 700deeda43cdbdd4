// Host side of sm90_forward: attention forward for Hopper.
#include <fmt/format.h>

#include <span>

#include "compiler/plan/typed_skeleton.h"
#include "compiler/spec/operators/hstu_attention/shared_value.h"
#include "compiler/support/text.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/attention/sm90/limits.h"
#include "templates/attention/sm90_forward/cost.h"
#include "templates/attention/sm90_forward/delta_cost.h"
#include "templates/attention/sm90_forward/resources.h"
#include "templates/attention/sm90_forward/small_batch_cost.h"
#include "templates/common/sm90/machine.h"
#include "templates/common/sm90/wgmma_printer.h"

namespace hstujit {

namespace {

using sm90::Resources;

struct Sm90Forward {
  using Spec = AttentionSpec;
  using Config = AttentionConfig;
  static constexpr std::string_view kName = "attention/sm90_forward";
  static constexpr Direction kDirection = Direction::kForward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size);
  static Constants constants(const Spec& spec, const Config& config);
  static std::string instruction_wrappers(const Spec& spec, const Config& config);
};

std::vector<AttentionConfig> Sm90Forward::space(const Spec& spec) {
  std::vector<AttentionConfig> configs;
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
    std::vector<int64_t> block_n;
  };
  const bool delta = spec.query_rows() != QueryRows::kAll;
  const std::vector<Shape> shapes = {
      {2, 1, {128, 96, 64}}, {1, 2, {128, 80, 64}}, {1, 3, {64}}, {1, 4, {64}}, {3, 1, {96, 80, 64}}};
  // Few rows over long histories: what counts is how much of k and v is on its way at a time.
  const std::vector<Shape> delta_shapes = {{1, 1, {128, 64}}, {1, 2, {128, 64}}, {1, 3, {64}}, {2, 1, {128, 64}}};
  constexpr int64_t kStages[] = {2, 3, 4, 6};
  constexpr const char* kSchedules[] = {"persistent", "grid"};
  const auto all_stages = std::span(kStages).first(delta ? 4 : 3);
  const auto schedules = std::span(kSchedules).last(delta ? 1 : 2);
  for (const Shape& shape : delta ? delta_shapes : shapes) {
    for (const int64_t block_n : shape.block_n) {
      for (const int64_t stages : all_stages) {
        for (const char* const schedule : schedules) {
          for (const bool ping_pong : {false, true}) {
            AttentionConfig config = sm90::tile_config(shape.consumers, block_n, stages, shape.blocks_per_sm);
            config.schedule = schedule;
            config.ping_pong = ping_pong;
            configs.push_back(std::move(config));
          }
        }
      }
    }
  }
  if (delta) return configs;
  if (split_score(spec.params()) && !spec.params().has_softmax()) {
    for (const int64_t head_cluster : {2, 4, 8}) {
      if (spec.params().heads % head_cluster != 0) continue;
      for (const int64_t block_n : {128, 96, 64}) {
        for (const int64_t stages : {2, 3, 4}) {
          for (const bool ping_pong : {false, true}) {
            configs.push_back(sm90::tile_config(2, block_n, stages, 1));
            configs.back().head_cluster = head_cluster;
            configs.back().ping_pong = ping_pong;
          }
        }
      }
    }
  }
  for (const int64_t blocks_per_sm : {1, 2, 3, 4}) {
    for (const int64_t block_n : {64, 128}) {
      for (const int64_t stages : {2, 3, 4}) {
        configs.push_back(sm90::tile_config(1, block_n, stages, blocks_per_sm));
        configs.back().split_kv = true;
        if (stages == 4) continue;
        configs.push_back(sm90::tile_config(1, block_n, stages, blocks_per_sm));
        configs.back().schedule = "persistent";
        configs.back().pack_sequences = true;
      }
    }
  }
  return configs;
}

// Why the CTAs of a cluster cannot share what all heads have in common; empty where they can, or do not.
std::vector<Rejection> head_cluster_rejections(const AttentionSpec& spec, const AttentionConfig& config) {
  if (config.head_cluster == 1) return {};
  std::vector<Rejection> reasons;
  const auto refuse = [&](std::string_view why) {
    reasons.push_back({"head_cluster", fmt::format("head_cluster {}; allowed: 1, {}", config.head_cluster, why)});
  };
  if (spec.params().heads % config.head_cluster != 0)
    refuse(fmt::format("or a divisor of the {} heads", spec.params().heads));
  if (!split_score(spec.params())) refuse("the score reads nothing that is worth it and the same for all heads");
  if (spec.params().has_softmax()) refuse("heads with softmax take the whole score by themselves");
  if (spec.params().has_intervals()) refuse("rows of different heads may see different columns with attn_func");
  if (spec.query_rows() != QueryRows::kAll) refuse(fmt::format("q of {} has few rows", spec.op()));
  if (config.schedule != "grid" || config.split_kv || config.pack_sequences || config.consumers == 1 ||
      config.blocks_per_sm > 1)
    refuse("or several consumers, schedule grid and one CTA on a multiprocessor");
  return reasons;
}

std::vector<Rejection> Sm90Forward::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  std::vector<Rejection> reasons = sm90::general_rejections(spec.params(), config, device, "rows", "grid persistent");
  if (config.schedule == "persistent" && spec.query_rows() != QueryRows::kAll) {
    reasons.push_back(
        {"schedule", fmt::format("schedule persistent sorts sequences by their rows in q, which {} has few "
                                 "of; allowed: grid",
                                 spec.op())});
  }
  if (config.ping_pong && config.consumers < 2) {
    reasons.push_back(
        {"ping_pong", fmt::format("ping-pong of {}; allowed: 2 and more", counted(config.consumers, "consumer"))});
  }
  if (config.split_kv) {
    if (spec.query_rows() != QueryRows::kAll) {
      reasons.push_back({"split_kv", fmt::format("split_kv true; allowed: false, {} splits the columns of "
                                                 "every tile of one consumer",
                                                 spec.op())});
    } else if (config.consumers != 1 || config.schedule != "grid") {
      reasons.push_back({"split_kv", fmt::format("split_kv with {} and schedule {}; allowed: with 1 "
                                                 "consumer and schedule grid",
                                                 counted(config.consumers, "consumer"), config.schedule)});
    }
  }
  if (config.split_kv && spec.params().has_softmax()) {
    reasons.push_back({"split_kv",
                       "split_kv true; allowed: false, CTAs that share the columns of a row with softmax "
                       "would have different largest S"});
  }
  for (Rejection& reason : sm90::packed_rejections(spec, config)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::site_warp_rejections(config)) reasons.push_back(std::move(reason));
  // A tile knows where its rows of q are, and not where those of k begin.
  if (const Operand* const read = find_read_rows(spec.operands()); read && spec.query_rows() != QueryRows::kAll) {
    reasons.push_back({"operand", fmt::format("{} reads {} in the score; allowed: with all rows of each sequence in q",
                                              spec.op(), read->name)});
  }
  for (Rejection& reason : head_cluster_rejections(spec, config)) reasons.push_back(std::move(reason));
  if (!reasons.empty()) return reasons;
  const Resources resources(spec, config);
  if (config.split_kv && !resources.partial_fits) {
    reasons.push_back(
        {"split_kv", fmt::format("the sums of {} rows and {} columns do not fit where {} stages of {} "
                                 "columns of k and v were",
                                 config.block_m, spec.params().hidden_dim, config.stages, config.block_n)});
    return reasons;
  }
  reasons = sm90::occupancy_limits(config, resources.threads, resources.shared_bytes, resources.shared_bytes_resident,
                                   device);
  for (Rejection& reason :
       sm90::sort_limits(config, resources.threads, resources.schedule_sequences, resources.qk_tiles))
    reasons.push_back(std::move(reason));
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back({"registers", fmt::format("a consumer thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.consumer_registers)});
  }
  return reasons;
}

LaunchPlan Sm90Forward::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  const Resources resources(spec, config);
  const Signature signature = spec.signature(Direction::kForward);

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_forward_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}{}{}{}", attention_kernel_prefix(spec),
                  to_string(params.dtype), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.schedule, config.blocks_per_sm, config.ping_pong ? "_ping_pong" : "",
                  config.split_kv ? "_split_kv" : "", config.pack_sequences ? "_packed" : "",
                  config.head_cluster > 1 ? fmt::format("_heads{}", config.head_cluster) : "",
                  config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
  const auto map_slot = [&](const char* name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  plan.slots = {map_slot("q_map", "q", config.block_m),          map_slot("k_map", "k", config.block_n),
                map_slot("v_map", "v", config.block_n),          map_slot("q_tail_map", "q", sm90::kTailBoxRows),
                map_slot("k_tail_map", "k", sm90::kTailBoxRows), map_slot("v_tail_map", "v", sm90::kTailBoxRows)};
  if (resources.pv_tiles <= resources.qk_tiles) plan.slots.push_back(map_slot("out_map", "out", sm90::kTailBoxRows));
  for (ParamSlot& slot : attention_common_slots(spec)) plan.slots.push_back(std::move(slot));
  if (config.pack_sequences) {
    for (ParamSlot& slot : attention_tensor_slots(signature, "v", "const u16*")) plan.slots.push_back(std::move(slot));
    plan.grid = packed_attention_grid(spec, config.block_m, Direction::kForward);
  } else {
    plan.grid = attention_grid(spec, config.block_m);
  }
  if (resources.split) {
    plan.cluster = {.max = sm90::kMaxSplits,
                    .argument = find_argument(signature, "max_seq_len"),
                    .min = sm90::kMinSplitTiles * config.block_n};
  }
  plan.fixed_cluster = config.head_cluster;
  if (config.schedule == "persistent") plan.persistent_blocks = device.sm_count * config.blocks_per_sm;
  return plan;
}

double Sm90Forward::estimate(const Spec& spec, const Config& config, const DeviceSpec& device,
                             const ProblemSize& size) {
  if (spec.query_rows() != QueryRows::kAll) return sm90::delta_estimate_ms(spec, config, device, size);
  if (size.small_batch) return sm90::small_batch_estimate_ms(spec, config, device, size);
  return sm90::estimate_ms(spec, config, device, size);
}

Constants Sm90Forward::constants(const Spec& spec, const Config& config) {
  Constants constants = constants_of(Resources(spec, config));
  for (auto& constant : attention_constants(spec)) constants.push_back(std::move(constant));
  return constants;
}

std::string Sm90Forward::instruction_wrappers(const Spec& spec, const Config& config) {
  const auto& params = spec.params();
  return sm90::print_wgmma("QkProduct", {.dtype = params.dtype,
                                         .n = config.block_n,
                                         .k = params.attn_dim,
                                         .a = sm90::OperandA::kShared,
                                         .a_rows = config.block_m,
                                         .transpose_b = false,
                                         .b_rows = config.block_n,
                                         .accumulate = sm90::Accumulate::kNever}) +
         "\n" +
         sm90::print_wgmma("PvProduct", {.dtype = params.dtype,
                                         .n = params.hidden_dim,
                                         .k = config.block_n,
                                         .a = sm90::OperandA::kRegisters,
                                         .accumulate = sm90::Accumulate::kArgument});
}

}  // namespace

const Skeleton& attention_sm90_forward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<Sm90Forward>;
  return skeleton;
}

const SkeletonSource& attention_sm90_forward_source() {
  static const TypedSource<Sm90Forward> source;
  return source;
}

}  // namespace hstujit
