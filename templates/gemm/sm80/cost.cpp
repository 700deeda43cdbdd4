#include "templates/gemm/sm80/cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/integers.h"
#include "templates/gemm/cost.h"
#include "templates/gemm/sm80/resources.h"

namespace hstujit::gemm_sm80 {

namespace {

// From data sheets, not from timings.
constexpr double kClockKhz = 1.4e6;
constexpr double kProductsPerCycle = 1024;     // multiplications of a multiprocessor and clock in 16 bits: A100,
constexpr double kAdaProductsPerCycle = 512;   // and sm_86 and sm_89
constexpr double kSharedBytesPerCycle = 128;   // of a multiprocessor
constexpr double kL2BytesPerCycle = 40;        // of a multiprocessor, from L2
constexpr double kMemoryBytesPerCycle = 1000;  // of global memory, all multiprocessors
constexpr double kLoadCycles = 900;            // of a stage, from the request to its arrival
constexpr double kStepCycles = 60;             // of a stage besides: the barrier, addresses
constexpr double kStoreCycles = 12;            // for a row of 64 columns of a tile
constexpr double kStartCycles = 6000;          // of a launch
constexpr double kAddCycles = 4000;            // of the kernel that adds up parts
constexpr double kWithoutWgmma = 4;            // of the time, where gemm/sm90 is: for whoever asks for this one alone

}  // namespace

double estimate_ms(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, const ProblemSize& size) {
  const GemmInterface& gemm = spec.interface();
  const Resources resources(config);
  const gemm::Extents extents = gemm::extents_of(spec, size);
  const int64_t m = extents.m, k = extents.k;
  const auto block_m = static_cast<double>(config.block_m), block_n = static_cast<double>(config.block_n);
  const auto splits = static_cast<double>(config.split_k);
  const auto resident = static_cast<double>(std::max<int64_t>(1, resources.resident(device)));
  const bool narrow = device.capability() == 86 || device.capability() == 89;

  // CTAs of a multiprocessor share its units, and wait for loads side by side.
  const int64_t products = extents.products * ceil_div(m, config.block_m) * ceil_div(gemm.n, config.block_n);
  const double tiles = static_cast<double>(products) * splits;
  const double ctas = static_cast<double>(device.sm_count) * resident;
  const double rounds = std::ceil(tiles / ctas);
  const double stages = static_cast<double>(ceil_div(k, kDepth)) / splits;
  const double multiply = block_m * block_n * kDepth / (narrow ? kAdaProductsPerCycle : kProductsPerCycle);
  // A warp reads its rows and columns for itself.
  const auto warps_n = static_cast<double>(4 * config.consumers / kWarpsM);
  const double shared = (block_m * (1 + warps_n) + block_n * (1 + kWarpsM)) * kDepth * 2 / kSharedBytesPerCycle;
  const double load = (block_m + block_n) * kDepth * 2 / kL2BytesPerCycle;
  const double busy = resident * std::max({multiply, shared, load});
  const double stage = std::max(busy, kLoadCycles / static_cast<double>(config.stages - 1)) + kStepCycles;
  const double store = resident * block_m * block_n / 64 * kStoreCycles;
  const double cycles = kStartCycles + rounds * (stages * stage + kLoadCycles + store);

  const double partials = splits > 1 ? 2 * splits * static_cast<double>(m * gemm.n) * 4 : 0;
  const double bytes = extents.bytes + partials;
  const double all = std::max(cycles, bytes / kMemoryBytesPerCycle) + (splits > 1 ? kAddCycles : 0);
  return all / kClockKhz * (device.arch == "sm_90a" ? kWithoutWgmma : 1);
}

}  // namespace hstujit::gemm_sm80
