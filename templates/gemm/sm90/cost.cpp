// From what the machine can do at best; not fitted to timings yet.
#include "templates/gemm/sm90/cost.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/gemm/sm90/resources.h"

namespace hstujit::gemm_sm90 {

namespace {

constexpr double kClockKhz = 1.7e6;
constexpr double kRows = 131072;            // where a launch says how many there are
constexpr double kProductsPerCycle = 2048;  // multiplications of a multiprocessor and clock, in 16 bits
constexpr double kBytesPerCycle = 2500;     // of global memory, all multiprocessors
constexpr double kL2BytesPerCycle = 32;     // of a multiprocessor, from L2
constexpr double kFillCycles = 1500;        // until the first stage of a CTA is there
constexpr double kStoreCycles = 12;  // of a consumer for each of its rows of 64 columns, other consumers beside it

}  // namespace

double estimate_ms(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device) {
  const GemmInterface& gemm = spec.interface();
  const double m = gemm.m == GemmInterface::kRows ? kRows : static_cast<double>(gemm.m);
  const double k = gemm.k == GemmInterface::kRows ? kRows : static_cast<double>(gemm.k);
  const auto n = static_cast<double>(gemm.n);
  const auto block_m = static_cast<double>(config.block_m), block_n = static_cast<double>(config.block_n);
  const auto splits = static_cast<double>(config.split_k), sms = static_cast<double>(device.sm_count);
  const double tiles = std::ceil(m / block_m) * std::ceil(n / block_n) * splits;
  const double of_sm = std::ceil(tiles / sms);

  const double multiply = block_m * block_n * k / splits / kProductsPerCycle;
  const double store = block_m * block_n / 64 * kStoreCycles / static_cast<double>(config.consumers);
  const double load = (block_m + block_n) * k / splits * 2 / kL2BytesPerCycle;
  const double main_loop = std::max(multiply, load);
  const double cycles = kFillCycles + of_sm * (config.ping_pong ? std::max(main_loop, store) : main_loop + store);
  // Parts of a sum are written and read once more.
  const double bytes = spec.work(Direction::kForward, {{static_cast<int64_t>(kRows)}, {}, 0, {}}).bytes +
                       (splits > 1 ? 2 * splits * m * n * 4 : 0);
  return std::max(cycles, bytes / kBytesPerCycle) / kClockKhz;
}

}  // namespace hstujit::gemm_sm90
