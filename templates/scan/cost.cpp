// A launch says how many elements there are, and a kernel is chosen before it: the estimate is of a usual batch, which
// one CTA should do, and of a large one.
#include "templates/scan/cost.h"

#include <algorithm>

#include "compiler/support/integers.h"

namespace hstujit::scan {

namespace {

// Cycles, where nothing else is said.
constexpr double kStart = 4000, kFollow = 3000;  // of the kernel, of one behind it
constexpr double kLoad = 900;                    // from memory
constexpr double kSteps = 5, kShuffle = 24;      // of a warp's scan, one behind the other
constexpr double kShuffleRate = 2;               // of a multiprocessor's warps together, for each word
constexpr double kBarrier = 40, kOfWarp = 4;
constexpr double kBytes = 14;  // of a multiprocessor, each cycle
constexpr double kClockKhz = 1.7e6;

constexpr int64_t kUsual = 2048 + 1, kLarge = (int64_t{1} << 20) + 1;  // offsets
constexpr double kShareOfLarge = 0.1;

double cycles(int64_t count, const ScanConfig& config, int64_t element_bytes, const DeviceSpec& device) {
  const int64_t tiles = ceil_div(count, tile(config)), chunks = std::min(tiles, kMaxChunks);
  const int64_t resident = std::max<int64_t>(1, device.max_threads / (32 * config.warps)) * device.sm_count;
  const auto rounds = static_cast<double>(ceil_div(tiles, chunks) * ceil_div(chunks, resident));
  const auto items = static_cast<double>(config.items_per_thread), warps = static_cast<double>(config.warps);
  const double words = static_cast<double>(element_bytes) / 4;
  const double together = std::max(1.0, static_cast<double>(std::min(chunks, resident)) / device.sm_count);
  const double shuffles =
      std::max(kShuffle * kSteps + items * kSteps * 2, together * warps * items * kSteps * words * kShuffleRate);
  const double scan = rounds * (kLoad + shuffles + 2 * kBarrier + kOfWarp * warps);
  if (chunks == 1) return kStart + scan;
  const double bytes = 3 * static_cast<double>(count * element_bytes) / device.sm_count / kBytes;
  return kStart + kFollow + kLoad + rounds * (kLoad + kBarrier + kOfWarp * warps) + std::max(scan, bytes);
}

}  // namespace

double estimate_ms(const ScanConfig& config, int64_t element_bytes, const DeviceSpec& device) {
  return (cycles(kUsual, config, element_bytes, device) +
          kShareOfLarge * cycles(kLarge, config, element_bytes, device)) /
         kClockKhz;
}

}  // namespace hstujit::scan
