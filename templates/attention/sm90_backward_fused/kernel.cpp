// Host side of sm90_backward_fused: attention backward for Hopper, S and dP computed once.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/typed_skeleton.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_sites.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/attention/operands/gradients/following_kernels.h"
#include "templates/attention/sm90/limits.h"
#include "templates/attention/sm90_backward/bias_gradient.h"
#include "templates/attention/sm90_backward_fused/cost.h"
#include "templates/attention/sm90_backward_fused/resources.h"
#include "templates/attention/sm90_backward_fused/row_statistics.h"
#include "templates/common/sm90/machine.h"
#include "templates/common/sm90/wgmma_printer.h"

namespace hstujit {

namespace {

using sm90::backward::add_bias_gradient;
using sm90::backward::add_bias_gradient_constants;
using sm90::backward::FusedResources;
using sm90::backward::has_bias_gradient;
using sm90::backward::RowStatisticsResources;

constexpr int64_t kQTileRows = 64;
// Constants of the layout of dq_accum: the template has them, too, and compares.
constexpr int64_t kDqAccumGroup = 16;
constexpr int64_t kDqAccumRows = 8;
constexpr int kConvertThreads = 256;

// The counter from which CTAs take the next tile, or the next (sequence, head).
void add_counter(LaunchPlan& plan) {
  constexpr int64_t kTaken = 8;  // bytes
  add_workspace_region("taken_tiles", "u64*", {{constant_factor(kTaken)}, true}, plan);
}

// The dq semaphores of the "semaphore" schedule: as many for each head as there are Q tiles, and one more for each
// sequence (semaphore_of in accumulation_order.cuh).
void add_dq_semaphore(const AttentionSpec& spec, const Signature& signature, LaunchPlan& plan) {
  constexpr int64_t kSemaphoreBytes = 4;
  const GridFactor counters = constant_factor(kSemaphoreBytes * spec.params().heads);
  add_workspace_region("dq_semaphore", "u32*", {{size_factor(signature, "q", kQTileRows), counters}, true}, plan);
  plan.workspace.regions.push_back({{size_factor(signature, "seq_offsets"), counters}, true});
}

// Lets the kernel of row_statistics.cuh run in front where heads have softmax.
void add_row_statistics(const AttentionSpec& spec, LaunchPlan& plan) {
  if (!spec.params().has_softmax()) return;
  const RowStatisticsResources resources(spec);
  const Signature signature = spec.signature(Direction::kBackward);
  for (const char* operand : {"q", "dout"})
    plan.slots.push_back(attention_map_slot(signature, fmt::format("{}_map", operand), operand, resources.rows()));
  for (const char* operand : {"k", "v"}) {
    plan.slots.push_back(attention_map_slot(signature, fmt::format("{}_moving_map", operand), operand,
                                            RowStatisticsResources::kColumns));
  }
  add_softmax_rows(spec, {resources.rows(), static_cast<int>(resources.threads()), resources.shared_bytes, 1}, plan);
}

struct Sm90BackwardFused {
  using Spec = AttentionSpec;
  using Config = AttentionConfig;
  static constexpr std::string_view kName = "attention/sm90_backward_fused";
  static constexpr Direction kDirection = Direction::kBackward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  // "persistent" adds partials of dq atomically, in the order in which CTAs come to it. Site warps add up what their
  // CTA has, which another run may give to another CTA.
  static bool deterministic(const Config& config) { return config.schedule != "persistent" && config.site_warps == 0; }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size) {
    return sm90::backward::estimate_fused_ms(spec, config, device, size);
  }
  static Constants constants(const Spec& spec, const Config& config);
  static std::string instruction_wrappers(const Spec& spec, const Config& config);
};

// Why site warps are nothing for the instance; empty where they may be.
std::string site_warps_obstacle(const AttentionSpec& spec) {
  const HstuAttentionParams& params = spec.params();
  if (!std::ranges::any_of(spec.operands(), &Operand::has_sites)) return "the score reads no operand for them";
  if (params.has_softmax()) return "heads with softmax pass on other numbers than dS";
  // dS has no factor alpha then, which fp16 has no range for.
  if (params.dtype != DataType::kBf16) return fmt::format("dtype is {}, and they take bf16", to_string(params.dtype));
  const Result<Expression> score = parse_score(params);
  if (!score.ok() || !sites_add_to_x(*score, spec.operands()))
    return "what the score reads of tables, heads and scalars with gradients is not added to x alone";
  constexpr int64_t kMostReads = 15;  // of one table, whose terms of a Q tile are one sum of integers
  const int64_t reads = std::ranges::count(score->nodes(), Operator::kRead, &Expression::Node::op);
  if (reads > kMostReads)
    return fmt::format("the score reads operands in {} places, and they have room for {}", reads, kMostReads);
  return {};
}

// How many site warps a CTA has where the instance may have them: all consumer warps where they keep the sums.
int64_t site_warps_of(const AttentionSpec& spec, int64_t consumers) {
  return sm90::backward::consumers_sum_sites(spec) ? 4 * consumers : AttentionConfig::kSeparateSiteWarps;
}

std::vector<AttentionConfig> Sm90BackwardFused::space(const Spec& spec) {
  std::vector<AttentionConfig> configs;
  const bool site_warps = site_warps_obstacle(spec).empty();
  struct Shape {
    int64_t consumers;
    int64_t blocks_per_sm;
  };
  const auto add = [&](const Shape& shape, int64_t stages, const char* schedule) {
    configs.push_back(sm90::tile_config(shape.consumers, kQTileRows, stages, shape.blocks_per_sm));
    configs.back().schedule = schedule;
    if (!site_warps || (configs.back().schedule == "semaphore" && !sm90::backward::consumers_sum_sites(spec))) return;
    configs.push_back(configs.back());
    configs.back().site_warps = site_warps_of(spec, shape.consumers);
  };
  for (const Shape& shape : {Shape{2, 1}, Shape{1, 2}, Shape{1, 1}}) {
    for (const int64_t stages : {2, 3, 4}) add(shape, stages, "persistent");
    // One warpgroup alone on a multiprocessor has nobody to fill in while it waits.
    if (shape.consumers * shape.blocks_per_sm > 1) {
      for (const int64_t stages : {2, 3}) add(shape, stages, "per_sequence");
    }
    // CTAs that share a multiprocessor hold one another up where they wait for semaphores.
    if (shape.blocks_per_sm > 1) continue;
    for (const int64_t stages : {2, 3}) add(shape, stages, "semaphore");
  }
  return configs;
}

std::vector<Rejection> Sm90BackwardFused::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  std::vector<Rejection> reasons =
      sm90::general_rejections(params, config, device, "columns", "persistent semaphore per_sequence");
  if (config.block_n != kQTileRows) {
    reasons.push_back(
        {"block_n", fmt::format("block_n {}; allowed: {}, the rows of a product", config.block_n, kQTileRows)});
  }
  for (Rejection& reason : sm90::backward_rejections(config)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::query_row_rejections(spec)) reasons.push_back(std::move(reason));
  for (Rejection& reason : sm90::interval_softmax_rejections(params)) reasons.push_back(std::move(reason));
  for (Rejection& reason : gradient_rejections(spec, device)) reasons.push_back(std::move(reason));
  if (config.pack_sequences) {
    reasons.push_back({"pack_sequences", "pack_sequences true; allowed: false, this template has no packed tiles"});
  }
  if (config.site_warps > 0) {
    const std::string obstacle = site_warps_obstacle(spec);
    const auto refuse = [&](std::string_view why) {
      reasons.push_back({"site_warps", fmt::format("site_warps {}; allowed: 0, {}", config.site_warps, why)});
    };
    const int64_t most = site_warps_of(spec, config.consumers);
    if (!obstacle.empty()) {
      refuse(obstacle);
    } else if (sm90::backward::consumers_sum_sites(spec)) {
      if (config.site_warps != most) refuse(fmt::format("or the {} consumer warps of the CTA", most));
    } else if (config.site_warps > most || config.block_m > 64 * config.site_warps) {
      refuse(fmt::format("or a warp for each 64 columns, up to {}", most));
    }
    if (config.schedule == "semaphore" && !sm90::backward::consumers_sum_sites(spec))
      refuse("with schedule semaphore all warps have other work");
  }
  if (!reasons.empty()) return reasons;
  const FusedResources resources(spec, config);
  // The columns of a warpgroup begin at a tile of 64, or end before the next.
  const int64_t columns = resources.dq_columns;
  const bool fits_tiles =
      config.consumers == 1 || columns % sm90::kTileColumns == 0 || (columns > 0 && sm90::kTileColumns % columns == 0);
  if (params.attn_dim % (config.consumers * kDqAccumGroup) != 0 || !fits_tiles) {
    reasons.push_back(
        {"head_dim", fmt::format("{} columns of q cannot be split over {} consumers, each with a multiple of {} that "
                                 "divides {} or is a multiple of it",
                                 params.attn_dim, config.consumers, kDqAccumGroup, sm90::kTileColumns)});
  }
  for (Rejection& reason : sm90::occupancy_limits(config, resources.threads, resources.shared_bytes,
                                                  resources.shared_bytes_resident, device)) {
    reasons.push_back(std::move(reason));
  }
  for (Rejection& reason :
       sm90::sort_limits(config, resources.threads, resources.schedule_sequences, resources.qk_tiles))
    reasons.push_back(std::move(reason));
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back(
        {"registers",
         fmt::format("a consumer thread needs about {} registers, with sums of {} and {} columns for 64 columns of a "
                     "tile, and gets {}",
                     resources.registers_needed, params.attn_dim, params.hidden_dim, resources.consumer_registers)});
  }
  return reasons;
}

LaunchPlan Sm90BackwardFused::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const auto& params = spec.params();
  const FusedResources resources(spec, config);
  const Signature signature = spec.signature(Direction::kBackward);

  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_backward_fused_sm90_{}_qk{}_v{}_m{}_n{}_s{}_{}{}{}{}", attention_kernel_prefix(spec),
                  to_string(params.dtype), params.attn_dim, params.hidden_dim, config.block_m, config.block_n,
                  config.stages, config.schedule, config.blocks_per_sm, config.site_warps == 0 ? "" : "_sites",
                  config.activation == "mufu" ? "" : "_" + config.activation);
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);

  const auto map_slot = [&](const std::string& name, const char* argument, int64_t rows) {
    return attention_map_slot(signature, name, argument, rows);
  };
  // The members that the producer of both templates knows: of the operands, the stationary and the moving tiles.
  for (const char* operand : {"k", "v"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_map", operand), operand, config.block_m));
    plan.slots.push_back(map_slot(fmt::format("{}_tail_map", operand), operand, sm90::kTailBoxRows));
  }
  for (const char* operand : {"q", "dout"}) {
    plan.slots.push_back(map_slot(fmt::format("{}_moving_map", operand), operand, config.block_n));
    plan.slots.push_back(map_slot(fmt::format("{}_tail_map", operand), operand, sm90::kTailBoxRows));
  }
  for (const char* output : {"dk", "dv"})
    plan.slots.push_back(map_slot(fmt::format("{}_map", output), output, sm90::kTailBoxRows));
  for (ParamSlot& slot : attention_common_slots(spec, Direction::kBackward)) plan.slots.push_back(std::move(slot));
  plan.grid = attention_grid(spec, config.block_m, Direction::kBackward);
  plan.persistent_blocks = device.sm_count * config.blocks_per_sm;

  // As many groups of rows as q has, the last one rounded up.
  const GridFactor groups = size_factor(signature, "q", kDqAccumRows);
  const GridFactor group_bytes =
      constant_factor(kDqAccumRows * params.heads * params.attn_dim * static_cast<int64_t>(sizeof(float)));
  add_counter(plan);
  if (config.schedule == "semaphore") add_dq_semaphore(spec, signature, plan);
  if (config.schedule == "persistent") {
    FollowingKernel convert;
    convert.kernel_name = plan.kernel_name + "_convert";
    convert.function = "convert_dq";
    convert.threads = kConvertThreads;
    convert.grid = {groups};
    plan.following.push_back(std::move(convert));
  }
  add_workspace_region("dq_accum", "float*", {{groups, group_bytes}, config.schedule == "persistent"}, plan);
  add_row_statistics(spec, plan);
  add_bias_gradient(spec, plan);
  add_gradient_kernels(spec, device, {.site_warps = config.site_warps, .bias = has_bias_gradient(params)}, plan);
  add_interval_bounds(spec, config.block_n, plan);
  return plan;
}

Constants Sm90BackwardFused::constants(const Spec& spec, const Config& config) {
  const FusedResources resources(spec, config);
  Constants constants = constants_of(resources);
  if (config.site_warps > 0)
    constants.emplace_back(resources.consumer_sites ? "consumer_sites" : "separate_site_warps", 1);
  if (resources.bias_in_shared) constants.emplace_back("bias_in_shared", 1);
  if (resources.bias_in_shared || spec.params().has_softmax()) constants.emplace_back("q_tile_warp", 1);
  if (spec.params().has_softmax()) {
    for (auto& constant : constants_of(RowStatisticsResources(spec))) constants.push_back(std::move(constant));
  }
  add_bias_gradient_constants(spec, constants);
  constants.emplace_back("dq_accum_rows", kDqAccumRows);
  constants.emplace_back("dq_accum_group", kDqAccumGroup);
  for (auto& constant : attention_constants(spec)) constants.push_back(std::move(constant));
  return constants;
}

// Prints the products of row_statistics.cuh; none without softmax.
std::string print_row_products(const HstuAttentionParams& params, const RowStatisticsResources& resources) {
  if (!params.has_softmax()) return {};
  const auto print = [&](const char* name, int64_t width) {
    return sm90::print_wgmma(name, {.dtype = params.dtype,
                                    .n = RowStatisticsResources::kColumns,
                                    .k = width,
                                    .a = sm90::OperandA::kShared,
                                    .a_rows = resources.rows(),
                                    .transpose_b = false,
                                    .b_rows = RowStatisticsResources::kColumns,
                                    .accumulate = sm90::Accumulate::kFresh}) +
           "\n";
  };
  return print("RowScoreProduct", params.attn_dim) + print("RowGradientProduct", params.hidden_dim);
}

std::string Sm90BackwardFused::instruction_wrappers(const Spec& spec, const Config& config) {
  const auto& params = spec.params();
  // With softmax, dP is added to the means of rows.
  const auto gradients = params.has_softmax() ? sm90::Accumulate::kAlways : sm90::Accumulate::kFresh;
  const FusedResources resources(spec, config);
  const auto scores = resources.bias_in_shared ? sm90::Accumulate::kAlways : sm90::Accumulate::kFresh;
  return sm90::print_backward_products(params, config, scores, gradients) + "\n" +
         print_row_products(params, RowStatisticsResources(spec)) + sm90::backward::print_pair_products(params) +
         sm90::print_wgmma("DqProduct", {.dtype = params.dtype,
                                         .n = resources.dq_columns,
                                         .k = config.block_m,
                                         .a = sm90::OperandA::kSharedTransposed,
                                         .accumulate = config.schedule == "persistent" ? sm90::Accumulate::kFresh
                                                                                       : sm90::Accumulate::kAlways});
}

}  // namespace

const Skeleton& attention_sm90_backward_fused_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<Sm90BackwardFused>;
  return skeleton;
}

const SkeletonSource& attention_sm90_backward_fused_source() {
  static const TypedSource<Sm90BackwardFused> source;
  return source;
}

}  // namespace hstujit
