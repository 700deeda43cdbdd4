#include "templates/gemm/sm90/cost.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "compiler/support/integers.h"
#include "templates/gemm/cost.h"
#include "templates/gemm/sm90/resources.h"

namespace hstujit::gemm_sm90 {

namespace {

// Fitted to 3782 timings of 108 products on an H200 (2026-11-26), from 64 to 524,288 rows, two thirds of the shapes at
// a time: of the shapes left out the choices are within 14 % of the best, of all within 3 % in the mean.
constexpr double kClockKhz = 1.8e6;
constexpr double kProductsPerCycle = 2048;  // multiplications of a multiprocessor and clock, in 16 bits
constexpr double kWaits = 1.0;              // of warpgroups that multiply, for one another and for stages
constexpr double kBytesPerCycle = 2000;     // of global memory, all multiprocessors
constexpr double kL2BytesPerCycle = 120;    // of a multiprocessor, from L2
constexpr double kLoadCycles = 1800;        // of a stage, from the request to its arrival
constexpr double kClusterLoads = 1.5;       // times as long where the CTAs of a cluster wait for one another
constexpr double kStartCycles = 8100;       // of a launch, until the first stage is there
constexpr double kPieceCycles = 630;        // of a warp for what it stores at a time, where nothing hides it
constexpr int64_t kLine = 128;              // bytes, of L2 and of a box of the copy engine
constexpr double kBrokenLines = 4.5;        // times longer besides, to load boxes whose lines are parts of two of L2's
constexpr double kColumnSumCycles = 260;    // of a stage for a box whose columns are added up: it is read once more
constexpr double kAddCycles = 5400;         // of the kernel that adds up parts
constexpr double kExchangeCycles = 370;     // until the CTAs have left their parts for one another
constexpr double kClusterBytesPerCycle = 9.4;  // of a multiprocessor, from the others of its cluster
constexpr double kClusterRoom = 0.92;          // of the multiprocessors, those that clusters of four and more fit on
constexpr double kMainOverlap = 2.7;           // the norm of multiplying, loading and waiting that a stage takes
constexpr double kOverlap = 4.9;               // and of all that and the memory

double norm(std::initializer_list<double> parts, double power) {
  double sum = 0;
  for (const double part : parts) sum += std::pow(part, power);
  return std::pow(sum, 1 / power);
}

// How much longer it takes to load lines of a matrix with so many 16-bit elements in a row: most begin within a line.
double line_factor(int64_t width) {
  return 1 + kBrokenLines * (1 - static_cast<double>(std::gcd(width * 2, kLine)) / static_cast<double>(kLine));
}

// Boxes of a stage whose columns a tile adds up: those that tiles with the same columns do not share out evenly, too.
int64_t summed_boxes(const GemmInterface& gemm, const GemmConfig& config) {
  if (!gemm.column_sums) return 0;
  const bool of_a = gemm.column_sums->of_a;
  const int64_t shares = of_a ? ceil_div(gemm.n, config.block_n) : ceil_div(gemm.m, config.block_m);
  return ceil_div((of_a ? config.block_m : config.block_n) / kDepth, shares);
}

}  // namespace

double estimate_ms(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, const ProblemSize& size) {
  const GemmInterface& gemm = spec.interface();
  const gemm::Extents extents = gemm::extents_of(spec, size);
  const int64_t m = extents.m, k = extents.k;
  const auto block_m = static_cast<double>(config.block_m), block_n = static_cast<double>(config.block_n);
  const auto cluster = static_cast<double>(config.cluster), splits = static_cast<double>(config.split_k);

  // A cluster takes its tiles, one for each of its CTAs, at the same time.
  const int64_t clusters = extents.products * ceil_div(m, config.block_m * config.cluster) *
                           ceil_div(gemm.n, config.block_n) * config.split_k;
  const double room = config.cluster_k >= 4 ? kClusterRoom : 1;
  const auto multiprocessors = static_cast<int64_t>(room * static_cast<double>(device.sm_count));
  const int64_t together = std::max<int64_t>(1, multiprocessors / (config.cluster * config.cluster_k));
  const auto tiles = static_cast<double>(ceil_div(clusters, together));
  const double stages = static_cast<double>(ceil_div(ceil_div(k, kDepth), config.cluster_k)) / splits;
  const double multiply = block_m * block_n * kDepth / kProductsPerCycle * kWaits +
                          static_cast<double>(summed_boxes(gemm, config)) * kColumnSumCycles;
  const double a_lines = block_m * line_factor(gemm.a.transposed ? gemm.m : gemm.k);
  const double b_lines = block_n / cluster * line_factor(gemm.b.transposed ? gemm.k : gemm.n);
  const double load = (a_lines + b_lines) * kLine / kL2BytesPerCycle;
  const double wait = kLoadCycles * (config.cluster > 1 ? kClusterLoads : 1) /
                      static_cast<double>(std::max<int64_t>(config.stages - 1, 1));
  const double main_loop = stages * norm({multiply, load, wait}, kMainOverlap);
  const double exchanged = block_m * block_n * 4 * (1 - 1 / static_cast<double>(config.cluster_k));  // bytes
  const double store = config.split_k > 1     ? 0
                       : config.cluster_k > 1 ? kExchangeCycles + exchanged / kClusterBytesPerCycle
                                              : static_cast<double>(store_pieces(config)) * kPieceCycles;
  const double cycles =
      kStartCycles + (config.ping_pong ? tiles * std::max(main_loop, store) + store : tiles * (main_loop + store));

  // Parts of a sum are written and read once more.
  const double partials = splits > 1 ? 2 * splits * static_cast<double>(m * gemm.n) * 4 : 0;
  const double bytes = extents.bytes + partials;
  const double add = splits > 1 ? kAddCycles + partials / kBytesPerCycle : 0;
  return (norm({cycles, bytes / kBytesPerCycle}, kOverlap) + add) / kClockKhz;
}

}  // namespace hstujit::gemm_sm90
