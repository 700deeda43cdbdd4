#include "templates/attention/sm80/per_sequence_cost.h"

#include <algorithm>
#include <vector>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm80/cost_rates.h"

namespace hstujit::sm80 {

int64_t resident_ctas(int64_t threads, int64_t registers, int64_t shared_bytes, const DeviceSpec& device) {
  constexpr int64_t kMost = 32;  // of any multiprocessor
  const int64_t by_registers = device.registers / (threads * registers);
  const int64_t by_shared = device.multiprocessor_shared_memory() / (shared_bytes + kReservedSharedMemory);
  return std::max<int64_t>(1, std::min({kMost, by_registers, by_shared}));
}

double per_sequence_estimate_ms(const HstuAttentionParams& params, const AttentionConfig& config,
                                const DeviceSpec& device, const ProblemSize& size, const PerSequenceKernel& kernel,
                                const PerSequenceCosts& costs) {
  // One CTA has all tiles of the longest sequence. In buckets up to 256 rows it was the fastest in most timings; up to
  // 512, 0.96 to 1.2 times as slow as others; beyond, as slow as they at best, or up to eight times as slow.
  constexpr int64_t kShort = 256, kLong = 512;
  constexpr double kSlower = 2, kTooLong = 8;
  constexpr int64_t kMany = 1024;  // sequences; of fewer, longer ones nothing was faster than others
  const auto warps = static_cast<double>(config.warps), roles = static_cast<double>(kernel.roles);
  const auto scores = static_cast<double>(kernel.warp_rows * kernel.chunk_columns);
  const double fragments = static_cast<double>(kernel.warp_rows) / 16;
  const double of_score = roles * costs.score * score_work(params) + kernel.product_columns * costs.product;

  // Means over the assumed sequences.
  double instructions = 0, waits = 0, longest = 0;
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  for (const SequenceSize& sequence : sequences) {
    const TileCounts tiles = count_tiles(params, sequence, config.block_m, config.block_n);
    const TileCounts chunks = count_tiles(params, sequence, kernel.warp_rows, kernel.chunk_columns);
    const double of_tiles = tiles.row_tiles * (roles * costs.tile + fragments * costs.tile_column * kernel.sum_columns);
    // Clocks of all roles' warps.
    const double issued = warps * (roles * (costs.cta + tiles.kv_tiles * costs.moving_tile) + of_tiles) +
                          chunks.kv_tiles * scores / 32 * of_score;
    const double waited = costs.waits + tiles.row_tiles * costs.tile_waits + tiles.kv_tiles * costs.moving_waits +
                          costs.serial * issued / (roles * warps);
    instructions += issued;
    waits += roles * waited;
    longest = std::max(longest, waited);
  }
  const auto count = static_cast<double>(sequences.size());
  const double each = (instructions / kSchedulers + waits / static_cast<double>(kernel.resident)) / count;
  const auto pairs = static_cast<double>(params.heads * size.batch);
  const double slower = size.max_seq_len > kLong                          ? kTooLong
                        : size.max_seq_len > kShort || size.batch < kMany ? kSlower
                                                                          : 1;
  return slower * (pairs * each / static_cast<double>(device.sm_count) + costs.tail * longest + kStartCycles) /
         kClockKhz;
}

}  // namespace hstujit::sm80
