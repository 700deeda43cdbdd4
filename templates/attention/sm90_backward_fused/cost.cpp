#include "templates/attention/sm90_backward_fused/cost.h"

#include <algorithm>
#include <vector>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_sites.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/mask_shape.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90_backward_fused/resources.h"

namespace hstujit::sm90::backward {

namespace {

// One CTA has all of a sequence and head: of nine keys with more rows it was the fastest in one, by 4 %, and took up to
// 59 times as long in the others (docs/journal.md, entry 61). No tuning run is to time what takes so long.
constexpr int64_t kLongestPerSequence = 2048;
constexpr double kTooLongPerSequence = 4;

// Share of the sequences that a look-up without lengths assumes, which does not know how many there are: where they are
// few, one CTA for all of a sequence and head takes twice as long as tiles dealt out (docs/journal.md, entry 98).
constexpr double kBatchPerSequence = 0.7;

constexpr double kScoreShare = 0.3;  // of a moving tile; assumed, since no score in text has been timed

// What site warps leave of a moving tile's time, which counts the kernels that they save. Where an entry of a table
// follows from what is read, two warps take longer for it than the kernels do (docs/journal.md, entry 83).
constexpr double kSiteWarpShare = 0.6, kReadingSiteWarpShare = 1.2;

double share_of_site_warps(const AttentionSpec& spec, const AttentionConfig& config) {
  if (config.site_warps == 0) return 1;
  const Result<Expression> score = parse_score(spec.params());
  return score.ok() && site_entries_read(*score, spec.operands()) ? kReadingSiteWarpShare : kSiteWarpShare;
}

// Share of a causal sequence's Q tiles whose sums have no room in shared memory, where others have.
double share_of_gmem_accum(const FusedResources& resources, const AttentionConfig& config, int64_t rows) {
  if (resources.smem_accum_tiles == 0) return 0;
  const int64_t room = (resources.first_smem_accum_tile + resources.smem_accum_tiles) * config.block_n;
  const double within = std::min(1.0, static_cast<double>(room) / static_cast<double>(std::max(rows, int64_t{1})));
  return 1 - within * within;
}

}  // namespace

double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size, const FusedCosts& costs) {
  const HstuAttentionParams& params = spec.params();
  const FusedResources resources(spec, config);
  const bool semaphore = config.schedule == "semaphore", per_sequence = config.schedule == "per_sequence";
  const auto resident = static_cast<double>(config.blocks_per_sm);
  const double shared = config.blocks_per_sm > 1 ? costs.shared_multiprocessor : 1;
  const double columns = static_cast<double>(params.attn_dim + params.hidden_dim) / 256;
  const double waits = per_sequence                 ? costs.per_sequence_tile
                       : !semaphore                 ? costs.taken_tile
                       : resources.last_tiles_first ? costs.semaphore_last_tiles_first
                                                    : costs.semaphore_tile;
  const double of_score = 1 + kScoreShare * (score_work(params) - 1);
  const double of_sites = share_of_site_warps(spec, config);
  const double q_tile = shared * waits * of_score * of_sites * (costs.q_tile + costs.q_tile_columns * columns);
  const bool groups =
      !per_sequence && !(semaphore && resources.last_tiles_first) && size.batch > resources.schedule_sequences;
  const double tile = costs.tile + costs.tile_columns * columns +
                      (resources.stationary_stages == 1 ? costs.one_buffer : 0) +
                      (semaphore ? costs.semaphore_wait : 0) + (groups ? costs.in_group : 0);

  // Means over the assumed sequences; the longest work tile of the list is a tile, or all of a sequence and head.
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  const auto lengths = static_cast<double>(sequences.size());
  double work = 0, longest = 0, rows = 0, tiles = 0;
  for (const SequenceSize& sequence : sequences) {
    rows += static_cast<double>(sequence.rows) / lengths;
    const double in_gmem = per_sequence ? share_of_gmem_accum(resources, config, sequence.rows) : 0;
    const double of_this = q_tile * (1 + in_gmem * (costs.gmem_accum - 1));
    double work_tile = 0;
    for (const int64_t count : count_kv_tiles(params, sequence, config.block_m, config.block_n)) {
      const double q_tiles = static_cast<double>(count) * of_this;
      work += (q_tiles + tile) / resident;
      tiles += 1 / lengths;
      work_tile = per_sequence ? work_tile + q_tiles + tile : q_tiles;
      longest = std::max(longest, work_tile);
    }
    if (params.semi_local() && !per_sequence) {
      longest = std::max(longest, of_this * static_cast<double>(ceil_div(sequence.rows, config.block_n)));
    }
  }

  const auto batch = static_cast<double>(size.batch), heads = static_cast<double>(params.heads);
  const double balanced = balanced_batch(size) * (per_sequence && size.lengths.empty() ? kBatchPerSequence : 1);
  const double tail = per_sequence ? size.batch > resources.schedule_sequences ? costs.unsorted_tail : costs.list_tail
                      : !params.semi_local() ? costs.list_tail
                      : semaphore            ? costs.long_tile_tail
                                             : costs.long_tile_tail_of_list;
  double kernel = heads * balanced / static_cast<double>(device.sm_count) * work / lengths + tail * longest;
  // Sequences follow one another; all heads of one are worked on at the same time.
  if (semaphore && long_tile(params) == LongTile::kLast) {
    kernel = std::max(kernel, balanced * tiles * costs.semaphore_link);
  }
  if (semaphore || per_sequence) {
    const double too_long = per_sequence && size.max_seq_len > kLongestPerSequence ? kTooLongPerSequence : 1;
    return (kernel * batch / balanced + costs.launches) * costs.of_measured / 1000 * too_long;
  }
  // dq in fp32 is cleared and read, and written in 16 bits.
  constexpr double kBytesPerElement = 4 + 4 + 2;
  const double others = rows * balanced * heads * static_cast<double>(params.attn_dim) * kBytesPerElement;
  return ((kernel + others / costs.bytes_per_microsecond) * batch / balanced + costs.launches) * costs.of_measured /
         1000;
}

}  // namespace hstujit::sm90::backward
