#include "templates/attention/sm90_backward_fused/cost.h"

#include <algorithm>
#include <vector>

#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90_backward_fused/resources.h"

namespace hstujit::sm90::backward {

namespace {

// Microseconds on an H200, read off the cells of bench/grid.json (docs/journal.md, entry 29).
constexpr double kQTile = 0.85;                // a Q tile of 64 rows: what does not grow with the head dimensions,
constexpr double kQTileColumns = 1.43;         // and what does, for 256 columns of q and v
constexpr double kSharedMultiprocessor = 1.3;  // of a Q tile, beside another CTA
constexpr double kTile = 0.3;                  // between two tiles, as for a Q tile,
constexpr double kTileColumns = 5.6;
constexpr double kOneBuffer = 1.3;              // and what it takes more where k and v have one buffer
constexpr double kListTail = 0.5;               // longest work tiles of a list, at whose end others wait,
constexpr double kUnsortedTail = 1;             // where the longest may come last
constexpr double kInGroup = 0.7;                // of a list whose entries are groups: which sequence (not timed yet)
constexpr double kLaunches = 6;                 // of clearing, kernel and, with atomics, conversion
constexpr double kBytesPerMicrosecond = 4.1e6;  // of clearing and conversion
constexpr double kOfMeasured = 0.62;
// Of tiles that wait for semaphores (docs/journal.md, entry 31).
constexpr double kSemaphoreTile = 1.08;
constexpr double kSemaphoreLastTilesFirst = 1.12;
constexpr double kSemaphoreWait = 1.1;
// Of per_sequence sequences (entry 33): nobody waits, but a sum in global memory beside others in shared memory costs
// more.
constexpr double kPerSequenceTile = 0.95;
constexpr double kGmemAccum = 1.05;

// Of a causal sequence's Q tiles, those whose sums have no room in shared memory, where others have.
double share_of_gmem_accum(const FusedResources& resources, const AttentionConfig& config, int64_t rows) {
  if (resources.smem_accum_tiles == 0) return 0;
  const int64_t room = (resources.first_smem_accum_tile + resources.smem_accum_tiles) * config.block_n;
  const double within = std::min(1.0, static_cast<double>(room) / static_cast<double>(std::max(rows, int64_t{1})));
  return 1 - within * within;
}

}  // namespace

double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const FusedResources resources(spec, config);
  const bool semaphore = config.schedule == "semaphore", per_sequence = config.schedule == "per_sequence";
  const auto resident = static_cast<double>(config.blocks_per_sm);
  const double shared = config.blocks_per_sm > 1 ? kSharedMultiprocessor : 1;
  const double columns = static_cast<double>(params.attn_dim + params.hidden_dim) / 256;
  const double waits = per_sequence                 ? kPerSequenceTile
                       : !semaphore                 ? 1
                       : resources.last_tiles_first ? kSemaphoreLastTilesFirst
                                                    : kSemaphoreTile;
  const double q_tile = shared * waits * (kQTile + kQTileColumns * columns);
  const bool groups =
      !per_sequence && !(semaphore && resources.last_tiles_first) && size.batch > resources.schedule_sequences;
  const double tile = kTile + kTileColumns * columns + (resources.stationary_stages == 1 ? kOneBuffer : 0) +
                      (semaphore ? kSemaphoreWait : 0) + (groups ? kInGroup : 0);

  // Means over the assumed sequences; the longest work tile of the list is a tile, or all of a sequence and head.
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  const auto lengths = static_cast<double>(sequences.size());
  double work = 0, longest = 0, rows = 0;
  for (const SequenceSize& sequence : sequences) {
    rows += static_cast<double>(sequence.rows) / lengths;
    const double in_gmem = per_sequence ? share_of_gmem_accum(resources, config, sequence.rows) : 0;
    const double of_this = q_tile * (1 + in_gmem * (kGmemAccum - 1));
    double work_tile = 0;
    for (const int64_t count : count_kv_tiles(params, sequence, config.block_m, config.block_n)) {
      const double q_tiles = static_cast<double>(count) * of_this;
      work += (q_tiles + tile) / resident;
      work_tile = per_sequence ? work_tile + q_tiles + tile : q_tiles;
      longest = std::max(longest, work_tile);
    }
  }

  const auto batch = static_cast<double>(size.batch), heads = static_cast<double>(params.heads);
  const double balanced = balanced_batch(size);
  const double tail = per_sequence && size.batch > resources.schedule_sequences ? kUnsortedTail : kListTail;
  const double kernel = heads * balanced / static_cast<double>(device.sm_count) * work / lengths + tail * longest;
  if (semaphore || per_sequence) return (kernel * batch / balanced + kLaunches) * kOfMeasured / 1000;
  // dq in fp32 is cleared and read, and written in 16 bits.
  constexpr double kBytesPerElement = 4 + 4 + 2;
  const double others = rows * balanced * heads * static_cast<double>(params.attn_dim) * kBytesPerElement;
  return ((kernel + others / kBytesPerMicrosecond) * batch / balanced + kLaunches) * kOfMeasured / 1000;
}

}  // namespace hstujit::sm90::backward
