// Host side of kernel.cuh.
#include <fmt/format.h>

#include <span>

#include "compiler/plan/typed_skeleton.h"
#include "compiler/support/integers.h"
#include "templates/gemm/launch.h"
#include "templates/gemm/slots.h"
#include "templates/gemm/sm80/cost.h"
#include "templates/gemm/sm80/resources.h"
#include "templates/gemm/split_k.h"

namespace hstujit {

namespace {

using gemm_sm80::kMaxRegisters;
using gemm_sm80::Resources;

constexpr int kCapability = 80;
constexpr int64_t kMultiprocessors = 108;  // of the device that splits are made for; others have rounds less even

struct GemmSm80 {
  using Spec = GemmSpec;
  using Config = GemmConfig;
  static constexpr std::string_view kName = "gemm/sm80";
  static constexpr Direction kDirection = Direction::kForward;

  static std::vector<Config> space(const Spec& spec);
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device);
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device);
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize& size) {
    return gemm_sm80::estimate_ms(spec, config, device, size);
  }
  static Constants constants(const Spec& spec, const Config& config);
  static std::string instruction_wrappers(const Spec& spec, const Config& config);
};

std::vector<GemmConfig> GemmSm80::space(const Spec& spec) {
  struct Tile {
    int64_t block_m, block_n, consumers;
  };
  constexpr Tile kTiles[] = {{128, 128, 2}, {128, 256, 2}, {256, 128, 2}, {128, 64, 1},
                             {64, 128, 1},  {64, 64, 1},   {128, 128, 1}};
  // Nothing reads the rows of a band where each sequence has a product of its own.
  constexpr int64_t kBands[] = {8, 16};
  const auto bands = std::span(kBands).first(spec.interface().per_sequence() ? 1 : 2);
  std::vector<GemmConfig> configs;
  for (const Tile& tile : kTiles) {
    for (const int64_t split : gemm::splits_of(spec.interface(), tile.block_m, tile.block_n, kMultiprocessors)) {
      for (const int64_t stages : {3, 4, 2}) {
        for (const int64_t raster_rows : bands)
          configs.push_back({tile.block_m, tile.block_n, stages, tile.consumers, false, split, raster_rows, 1});
      }
    }
  }
  return configs;
}

std::vector<Rejection> GemmSm80::reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
  std::vector<Rejection> reasons;
  if (device.capability() < kCapability)
    reasons.push_back(
        {"arch", fmt::format("{} has no cp.async and no mma.sync of bf16 and tf32; sm_80 has", device.arch)});
  if (!gemm_sm80::well_formed(config)) {
    reasons.push_back(
        {"tile", fmt::format("{} x {} of {} warpgroups in {} stages; allowed: multiples of 64, rows a multiple of "
                             "16 and columns of 64 for each warpgroup, two stages and more",
                             config.block_m, config.block_n, config.consumers, config.stages)});
  }
  if (config.ping_pong) reasons.push_back({"ping_pong", "ping-pong true; allowed: false, all warps share a tile"});
  if (config.cluster != 1)
    reasons.push_back(
        {"cluster", fmt::format("a cluster of {} CTAs; allowed: 1, {} has none", config.cluster, device.arch)});
  if (config.cluster_k != 1) {
    reasons.push_back({"cluster_k", fmt::format("a sum shared by a cluster of {} CTAs; allowed: 1, {} has none",
                                                config.cluster_k, device.arch)});
  }
  gemm::reject_parts(spec, config, reasons);
  if (!reasons.empty()) return reasons;
  const Resources resources(spec, config);
  gemm::reject_size(config, resources.shared_bytes, resources.threads, device, reasons);
  if (resources.column_sum_bytes > resources.stage_bytes_of_a) {
    reasons.push_back(
        {"column_sums",
         fmt::format("sums of columns of {} threads take {} bytes, and the {} rows of a stage that they "
                     "replace have {}",
                     resources.threads, resources.column_sum_bytes, config.block_m, resources.stage_bytes_of_a)});
  }
  if (resources.registers_needed > kMaxRegisters) {
    reasons.push_back({"registers", fmt::format("a thread needs about {} registers; it has at most {}",
                                                resources.registers_needed, kMaxRegisters)});
  }
  return reasons;
}

LaunchPlan GemmSm80::launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
  const Resources resources(spec, config);
  LaunchPlan plan;
  plan.kernel_name = gemm::kernel_name(spec, config, "sm80");
  const int64_t resident = std::max<int64_t>(1, resources.resident(device));
  plan.threads = static_cast<int>(resources.threads);
  plan.shared_memory = resources.shared_bytes;
  plan.resident_blocks = static_cast<int>(resident);
  plan.persistent_blocks = device.sm_count * resident;
  plan.slots = gemm::factor_slots(spec);
  for (ParamSlot& slot : gemm::operand_slots(spec, /*out_address=*/true)) plan.slots.push_back(std::move(slot));
  plan.grid = gemm::tile_grid(spec, config.block_m, config.block_n);
  plan.grid.back().constant *= config.split_k;
  gemm::add_parts(spec, config, device, plan);
  return plan;
}

Constants GemmSm80::constants(const Spec& spec, const Config& config) {
  Constants constants = {{"shared_bytes", Resources(spec, config).shared_bytes}, {"simt", spec.is_ieee() ? 1 : 0}};
  gemm::add_constants(spec, constants);
  constants.emplace_back("tile_counter", 0);
  return constants;
}

std::string GemmSm80::instruction_wrappers(const Spec& spec, const Config& config) {
  if (spec.is_ieee()) {
    return "// A product, and the sum of it and what is there, rounded once.\n"
           "struct Simt {\n"
           "  static __device__ __forceinline__ void add(float& sum, float x, float y) { sum = __fmaf_rn(x, y, sum); "
           "}\n"
           "};\n" +
           gemm::print_split_k(config);
  }
  const bool tf32 = spec.dtype() == DataType::kFp32;
  const char* const type = tf32 ? "tf32" : spec.dtype() == DataType::kBf16 ? "bf16" : "f16";
  const int terms = tf32 ? 8 : 16;
  return fmt::format(
             "// 16 x 8 products of {0} terms each.\n"
             "struct {2} {{\n"
             "  static __device__ __forceinline__ void add(float (&sums)[4], const u32 (&rows)[4], u32 low, u32 high) "
             "{{\n"
             "    mma_m16n8k{0}_{1}(sums, rows, low, high);\n"
             "  }}\n"
             "}};\n",
             terms, type, tf32 ? "MmaTf32" : "Mma16bit") +
         gemm::print_split_k(config);
}

}  // namespace

const Skeleton& gemm_sm80_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<GemmSm80>;
  return skeleton;
}

const SkeletonSource& gemm_sm80_source() {
  static const TypedSource<GemmSm80> source;
  return source;
}

}  // namespace hstujit
