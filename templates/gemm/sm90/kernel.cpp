// Host side of kernel.cuh.
#include <fmt/format.h>

#include <span>

#include "compiler/plan/typed_skeleton.h"
#include "compiler/support/integers.h"
#include "templates/common/sm90/machine.h"
#include "templates/common/sm90/wgmma_printer.h"
#include "templates/gemm/launch.h"
#include "templates/gemm/slots.h"
#include "templates/gemm/sm90/cost.h"
#include "templates/gemm/sm90/resources.h"
#include "templates/gemm/split_k.h"

namespace hstujit {

namespace {

using gemm_sm90::kDepth;
using gemm_sm90::kPieceColumns;
using gemm_sm90::kPieceRows;
using gemm_sm90::Resources;

constexpr int64_t kMaxBox = 256;           // rows of a box of the copy engine
constexpr int64_t kAtomRows = 8;           // of the swizzle
constexpr int64_t kMapAlignment = 16;      // bytes of addresses and strides of tensor maps
constexpr int64_t kMultiprocessors = 132;  // of the devices that splits are made for; others have rounds less even

// Sums of sequences are of different lengths: CTAs take their tiles from a counter.
bool has_tile_counter(const GemmSpec& spec) { return spec.interface().per_sequence() && spec.interface().sums_rows(); }

struct GemmSm90 {
  using Spec = GemmSpec;
  using Config = GemmConfig;
  static constexpr std::string_view kName = "gemm/sm90";
  static constexpr Direction kDirection = Direction::kForward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static constexpr double kEstimateError = 1.2;
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size) {
    return gemm_sm90::estimate_ms(spec, config, device, size);
  }
  static Constants constants(const Spec& spec, const Config& config);
  static std::string instruction_wrappers(const Spec& spec, const Config& config);
};

std::vector<GemmConfig> GemmSm90::space(const Spec& spec) {
  struct Tile {
    int64_t block_m, block_n;
    std::vector<int64_t> stages;
    bool ping_pong = false;
    int64_t consumers = 2;
  };
  const std::vector<Tile> tiles = {{128, 256, {4, 3}},       {256, 128, {4}},        {128, 192, {4}},
                                   {128, 128, {6, 4}},       {128, 64, {6}},         {128, 128, {6, 4}, true},
                                   {64, 256, {4}, true},     {64, 128, {6}, true},   {64, 64, {6}, true},
                                   {64, 128, {6}, false, 1}, {64, 64, {6}, false, 1}};
  // Nothing reads the rows of a band where each sequence has a product of its own.
  constexpr int64_t kBands[] = {4, 16};
  const auto bands = std::span(kBands).first(spec.interface().per_sequence() ? 1 : 2);
  std::vector<GemmConfig> configs;
  for (const Tile& tile : tiles) {
    for (const int64_t cluster : {1, 2}) {
      for (const int64_t split :
           gemm::splits_of(spec.interface(), tile.block_m * cluster, tile.block_n, kMultiprocessors / cluster)) {
        for (const int64_t stages : tile.stages) {
          for (const int64_t raster_rows : bands) {
            configs.push_back(
                {tile.block_m, tile.block_n, stages, tile.consumers, tile.ping_pong, split, raster_rows, cluster});
          }
        }
      }
    }
    if (tile.ping_pong) continue;
    for (const int64_t cluster_k : {2, 4, 8})
      configs.push_back({tile.block_m, tile.block_n, tile.stages.front(), tile.consumers, false, 1, 4, 1, cluster_k});
  }
  return configs;
}

// Why no cluster may share the sum of a tile.
void reject_cluster_k(const GemmInterface& gemm, const GemmConfig& config, std::vector<Rejection>& reasons) {
  if (config.cluster_k == 1) return;
  const char* other = config.split_k > 1    ? "split_k"
                      : config.cluster > 1  ? "cluster"
                      : config.ping_pong    ? "ping_pong"
                      : gemm.per_sequence() ? "a product for each sequence"
                      : gemm.column_sums    ? "sums of columns beside the product"
                                            : nullptr;
  if (other != nullptr)
    reasons.push_back({"cluster_k", fmt::format("cluster_k {} together with {}; allowed: 1", config.cluster_k, other)});
}

std::vector<Rejection> GemmSm90::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  std::vector<Rejection> reasons;
  if (device.arch != "sm_90a") {
    reasons.push_back({"arch", fmt::format("{} has no wgmma; allowed: sm_90a", device.arch)});
    return reasons;
  }
  if (spec.dtype() == DataType::kFp32) {
    reasons.push_back({"dtype", "dtype fp32 is not multiplied here: wgmma cannot transpose 32-bit operands"});
    return reasons;
  }
  if (const int64_t alignment = spec.least_alignment(); alignment < kMapAlignment) {
    reasons.push_back(
        {"alignment", fmt::format("rows begin at multiples of {} bytes, and the tensor maps that load them "
                                  "need {}",
                                  alignment, kMapAlignment)});
    return reasons;
  }
  if (config.block_m == 0 || gemm_sm90::row_blocks(config) == 0 || config.block_m > kMaxBox) {
    reasons.push_back(
        {"block_m", fmt::format("block_m {} of {} consumers{}; allowed: 64 for each that shares it, or a "
                                "multiple, up to {}",
                                config.block_m, config.consumers, config.ping_pong ? " in ping-pong" : "", kMaxBox)});
  }
  if (config.block_n == 0 || config.block_n % kPieceColumns != 0 || config.block_n > kMaxBox) {
    reasons.push_back({"block_n", fmt::format("block_n {}; allowed: a multiple of {} up to {}", config.block_n,
                                              kPieceColumns, kMaxBox)});
  }
  const int64_t together = spec.interface().b.transposed ? kAtomRows : kDepth;
  if (config.block_n % (config.cluster * together) != 0) {
    reasons.push_back({"cluster", fmt::format("{} CTAs share {} columns; allowed: whole pieces of {} for each",
                                              config.cluster, config.block_n, together)});
  }
  if (const int64_t ctas = config.cluster * config.cluster_k; ctas > device.sm_count) {
    reasons.push_back({config.cluster > 1 ? "cluster" : "cluster_k",
                       fmt::format("a cluster of {} CTAs; the device has {} multiprocessors", ctas, device.sm_count)});
  }
  if (config.cluster > 1 && spec.interface().per_sequence()) {
    reasons.push_back(
        {"cluster", fmt::format("a cluster of {} CTAs with a product for each sequence; allowed: 1", config.cluster)});
  }
  reject_cluster_k(spec.interface(), config, reasons);
  if (config.ping_pong && config.consumers != 2)
    reasons.push_back({"ping_pong", fmt::format("ping-pong of {} consumers; allowed: 2", config.consumers)});
  gemm::reject_parts(spec, config, reasons);
  if (!reasons.empty()) return reasons;
  const Resources resources(spec, config);
  gemm::reject_size(config, resources.shared_bytes, resources.threads, device, reasons);
  if (resources.partial_bytes > resources.stage_bytes) {
    reasons.push_back(
        {"cluster_k", fmt::format("a part of a tile's sum takes {} bytes, and the stages that it replaces "
                                  "have {}",
                                  resources.partial_bytes, resources.stage_bytes)});
  }
  if (resources.registers_needed > resources.consumer_registers) {
    reasons.push_back({"registers", fmt::format("a consumer thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.consumer_registers)});
  }
  return reasons;
}

LaunchPlan GemmSm90::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const GemmInterface& gemm = spec.interface();
  const Resources resources(spec, config);
  LaunchPlan plan;
  plan.kernel_name = gemm::kernel_name(spec, config, "sm90");
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  if (config.cluster_k == 1) plan.persistent_blocks = round_down(device.sm_count, config.cluster);
  plan.fixed_cluster = config.cluster * config.cluster_k;
  // A box is 64 of the contiguous dimension; of the other one a tile's, or 64 of the sum.
  plan.slots = {
      gemm::map_slot(spec, "a_map", gemm.a.name, gemm.a.transposed ? kDepth : config.block_m),
      gemm::map_slot(spec, "b_map", gemm.b.name, gemm.b.transposed ? config.block_n / config.cluster : kDepth)};
  const bool whole_sums = resources.store_buffers > 0;  // of a CTA
  if (whole_sums) plan.slots.push_back(gemm::map_slot(spec, "out_map", "out", kPieceRows));
  const bool out_address = !whole_sums || gemm.rows_of_sequences();
  for (ParamSlot& slot : gemm::operand_slots(spec, out_address)) plan.slots.push_back(std::move(slot));
  plan.grid = gemm::tile_grid(spec, config.block_m * config.cluster, config.block_n);
  plan.grid.back().constant *= config.split_k * config.cluster * config.cluster_k;
  if (has_tile_counter(spec)) {
    const int64_t bytes = sizeof(int64_t);
    add_workspace_region("tile_counter", "u64*", {{constant_factor(bytes)}, true}, plan);
  }
  gemm::add_parts(spec, config, device, plan);
  return plan;
}

Constants GemmSm90::constants(const Spec& spec, const Config& config) {
  Constants constants = constants_of(Resources(spec, config));
  gemm::add_constants(spec, constants);
  constants.emplace_back("tile_counter", has_tile_counter(spec) ? 1 : 0);
  return constants;
}

std::string GemmSm90::instruction_wrappers(const Spec& spec, const Config& config) {
  const GemmInterface& gemm = spec.interface();
  return sm90::print_wgmma("Product",
                           {.dtype = spec.dtype(),
                            .n = config.block_n,
                            .k = kDepth,
                            .a = gemm.a.transposed ? sm90::OperandA::kSharedTransposed : sm90::OperandA::kShared,
                            .a_rows = kDepth,
                            .transpose_b = !gemm.b.transposed,
                            .b_rows = config.block_n,
                            .accumulate = sm90::Accumulate::kArgument}) +
         gemm::print_split_k(config);
}

}  // namespace

const Skeleton& gemm_sm90_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<GemmSm90>;
  return skeleton;
}

const SkeletonSource& gemm_sm90_source() {
  static const TypedSource<GemmSm90> source;
  return source;
}

}  // namespace hstujit
