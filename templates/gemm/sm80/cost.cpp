#include "templates/gemm/sm80/cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/integers.h"
#include "templates/gemm/cost.h"
#include "templates/gemm/slots.h"
#include "templates/gemm/sm80/resources.h"

namespace hstujit::gemm_sm80 {

namespace {

// From data sheets, not from timings.
constexpr double kClockKhz = 1.4e6;
constexpr double kSharedBytesPerCycle = 128;  // of a multiprocessor
constexpr double kLoadCycles = 900;           // of a stage, from the request to its arrival
constexpr double kStepCycles = 60;            // of a stage besides: the barrier, addresses
constexpr double kStoreCycles = 12;           // for a row of 64 columns of a tile
constexpr double kStartCycles = 6000;         // of a launch
constexpr double kAddCycles = 4000;           // of the kernel that adds up parts
constexpr double kWithoutWgmma = 4;           // of the time, where gemm/sm90 is: for whoever asks for this one alone

// Work of a multiprocessor in a clock, and, for global memory, of all of them.
struct Rates {
  double tensor_16bit;  // multiplications of mma.sync
  double fma;           // of fp32
  double l2_bytes, memory_bytes;
};
Rates rates_of(int capability) {
  if (capability >= 90) return {1230, 128, 64, 2000};  // a guess: fp32 takes 2.6 times as long as this says
  if (capability >= 86) return {512, 128, 40, 1000};
  return {1024, 64, 40, 1000};
}

// Loads of 16 bytes of shared memory for each fused multiply-add, which take issue slots as these do: a thread has four
// rows of each 32 of its warp's, and eight columns.
double loads_for_fma(const GemmConfig& config) {
  const auto rows = static_cast<double>(config.block_m / kWarpsM) / 8;
  const auto columns = static_cast<double>(config.block_n * kWarpsM / (4 * config.consumers)) / 4;
  return (rows + columns) / (4 * rows * columns);
}

}  // namespace

double estimate_ms(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, const ProblemSize& size) {
  const GemmInterface& gemm = spec.interface();
  const Resources resources(spec, config);
  const gemm::Extents extents = gemm::extents_of(spec, size);
  const int64_t m = extents.m, k = extents.k;
  const auto block_m = static_cast<double>(config.block_m), block_n = static_cast<double>(config.block_n);
  const auto splits = static_cast<double>(config.split_k);
  const auto resident = static_cast<double>(std::max<int64_t>(1, resources.resident(device)));
  const auto depth = static_cast<double>(gemm::stage_depth(spec));
  const bool fp32 = spec.dtype() == DataType::kFp32;
  const Rates rates = rates_of(device.capability());
  const double rate = spec.is_ieee() ? rates.fma / (1 + loads_for_fma(config))
                      : fp32         ? rates.tensor_16bit / 2
                                     : rates.tensor_16bit;

  // CTAs of a multiprocessor share its units, and wait for loads side by side.
  const int64_t products = extents.products * ceil_div(m, config.block_m) * ceil_div(gemm.n, config.block_n);
  const double tiles = static_cast<double>(products) * splits;
  const double ctas = static_cast<double>(device.sm_count) * resident;
  const double rounds = std::ceil(tiles / ctas);
  const double stages = static_cast<double>(ceil_div(k, gemm::stage_depth(spec))) / splits;
  const double multiply = block_m * block_n * depth / rate;
  // A warp reads its rows and columns for itself; without ldmatrix, several lanes read the same ones.
  const auto warps_n = static_cast<double>(4 * config.consumers / kWarpsM);
  const double row_reads = spec.is_ieee() ? 2 : 1, column_reads = spec.is_ieee() ? 4 : 1;
  const double summed = !gemm.column_sums ? 0 : gemm.column_sums->of_a ? block_m : block_n;  // by the first tile
  const double shared = (block_m * (1 + row_reads * warps_n) + block_n * (1 + column_reads * kWarpsM) + summed) *
                        gemm::kLineBytes / kSharedBytesPerCycle;
  const double load = (block_m + block_n) * gemm::kLineBytes / rates.l2_bytes;
  const double busy = resident * std::max({multiply, shared, load});
  const double stage = std::max(busy, kLoadCycles / static_cast<double>(config.stages - 1)) + kStepCycles;
  const double store = resident * block_m * block_n / 64 * kStoreCycles;
  const double cycles = kStartCycles + rounds * (stages * stage + kLoadCycles + store);

  const double partials = splits > 1 ? 2 * splits * static_cast<double>(m * gemm.n) * 4 : 0;
  const double bytes = extents.bytes + partials;
  const double all = std::max(cycles, bytes / rates.memory_bytes) + (splits > 1 ? kAddCycles : 0);
  return all / kClockKhz * (device.arch == "sm_90a" && !fp32 ? kWithoutWgmma : 1);
}

}  // namespace hstujit::gemm_sm80
