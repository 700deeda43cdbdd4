#include "templates/attention/host/tile_counts.h"

#include <algorithm>
#include <cmath>
#include <list>

#include "compiler/spec/operators/hstu_attention/visible_columns.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

// The space of a template has a hundred configs of some ten tilings: what was counted for the last ones is cached.
struct Counted {
  HstuAttentionParams params;
  SequenceSize sequence;
  int64_t block_m = 0, block_n = 0;
  std::vector<int64_t> kv_tiles;
};
constexpr size_t kMaxCounted = 32;

// KV tiles of `block_n` columns, counted from the first visible column on, that a span reaches into.
int64_t count_tiles_of(const std::vector<Span>& spans, int64_t block_n) {
  int64_t total = 0, counted = 0;  // KV tiles below `counted` are in the total
  for (const Span& span : spans) {
    const int64_t begin = std::max(counted, (span.begin - spans.front().begin) / block_n);
    const int64_t end = ceil_div(span.end - spans.front().begin, block_n);
    total += std::max<int64_t>(0, end - begin);
    counted = std::max(counted, end);
  }
  return total;
}

}  // namespace

SequenceSize assumed_sequence(const HstuAttentionParams& params, double rows) {
  constexpr int64_t kTargets = 20, kContexts = 6;
  SequenceSize sequence;
  sequence.rows = std::max<int64_t>(1, std::llround(rows));
  if (params.num_targets) sequence.targets = std::min(sequence.rows, kTargets);
  if (params.num_contexts) sequence.contexts = std::min(sequence.rows, kContexts);
  return sequence;
}

SequenceSize assumed_sequence(const AttentionSpec& spec, const ProblemSize& size) {
  const int64_t longest = std::min(size.max_seq_len, kLongestCounted);
  SequenceSize sequence = assumed_sequence(spec.params(), size.mean_fill * static_cast<double>(longest));
  if (spec.query_rows() != QueryRows::kAll)
    sequence.first = std::max<int64_t>(sequence.rows - size.rows_of(kQueryAxis), 0);
  return sequence;
}

std::vector<SequenceSize> assumed_sequences(const HstuAttentionParams& params, const ProblemSize& size) {
  constexpr int kLengths = 5;
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  if (!size.lengths.empty()) {
    std::vector<SequenceSize> sequences;
    for (const int64_t rows : size.lengths) sequences.push_back(assumed_sequence(params, static_cast<double>(rows)));
    return sequences;
  }
  const double spread = std::min(size.mean_fill, 1 - size.mean_fill);
  std::vector<SequenceSize> sequences;
  for (int i = 0; i < kLengths; ++i) {
    const double fill = size.mean_fill + spread * ((2 * i + 1.0) / kLengths - 1);
    sequences.push_back(assumed_sequence(params, fill * max_rows));
  }
  return sequences;
}

double balanced_batch(const ProblemSize& size) {
  constexpr double kRows = 256 * 1024, kSequences = 16;
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const double rows = size.lengths.empty() ? max_rows : std::max(1.0, size.mean_fill * max_rows);
  return std::min(static_cast<double>(size.batch), std::max(kSequences, kRows / rows));
}

std::vector<int64_t> count_kv_tiles(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                                    int64_t block_n) {
  thread_local std::list<Counted> last;  // the latest one first
  const auto found = std::find_if(last.begin(), last.end(), [&](const Counted& counted) {
    return counted.block_m == block_m && counted.block_n == block_n && counted.sequence == sequence &&
           counted.params == params;
  });
  if (found != last.end()) {
    last.splice(last.begin(), last, found);
    return last.front().kv_tiles;
  }
  std::vector<int64_t> kv_tiles;
  kv_tiles.reserve(static_cast<size_t>(ceil_div(sequence.rows, block_m)));
  VisibleColumns visible(params, sequence.rows, sequence.targets, sequence.contexts);
  for (int64_t row = sequence.first; row < sequence.rows; row += block_m) {
    const int64_t end = std::min(row + block_m, sequence.rows);
    kv_tiles.push_back(count_tiles_of(visible.of(row, end - 1), block_n));
  }
  if (last.size() == kMaxCounted) last.pop_back();
  last.push_front({params, sequence, block_m, block_n, kv_tiles});
  return kv_tiles;
}

PackedTileCounts count_packed_kv_tiles(const HstuAttentionParams& params, const std::vector<SequenceSize>& sequences,
                                       int64_t block_m, int64_t block_n) {
  constexpr int64_t kRows = 4096;  // of enough tiles
  int64_t round = 0;
  for (const SequenceSize& sequence : sequences) round += sequence.rows;
  PackedTileCounts counts;
  // Of the tile that is not full yet: its rows, and what they see, counted from the first row of all.
  int64_t rows = 0, begin = 0, end = 0, start = 0;
  for (int64_t rounds = std::max<int64_t>(1, kRows / round); rounds > 0; --rounds) {
    for (const SequenceSize& sequence : sequences) {
      VisibleColumns visible(params, sequence.rows, sequence.targets, sequence.contexts);
      for (int64_t row = 0; row < sequence.rows;) {
        const int64_t taken = std::min(block_m - rows, sequence.rows - row);
        const std::vector<Span> spans = visible.of(row, row + taken - 1);
        if (rows == 0) begin = end = start + (spans.empty() ? 0 : spans.front().begin);
        if (!spans.empty()) end = start + spans.back().end;
        row += taken;
        rows += taken;
        if (rows < block_m) continue;
        counts.kv_tiles.push_back(taken == block_m ? count_tiles_of(spans, block_n) : ceil_div(end - begin, block_n));
        rows = 0;
      }
      start += sequence.rows;
      ++counts.sequences;
    }
  }
  if (rows > 0) counts.kv_tiles.push_back(ceil_div(end - begin, block_n));
  return counts;
}

int64_t count_columns_of_last_rows(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t rows_of_q) {
  VisibleColumns visible(params, sequence.rows, sequence.targets, sequence.contexts);
  int64_t columns = 0;
  for (const Span& span : visible.of(std::max<int64_t>(0, sequence.rows - rows_of_q), sequence.rows - 1)) {
    columns += span.end - span.begin;
  }
  return columns;
}

TileCounts count_tiles(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                       int64_t block_n) {
  TileCounts counts;
  for (const int64_t kv_tiles : count_kv_tiles(params, sequence, block_m, block_n)) {
    counts.row_tiles += 1;
    counts.kv_tiles += static_cast<double>(kv_tiles);
  }
  return counts;
}

}  // namespace hstujit
