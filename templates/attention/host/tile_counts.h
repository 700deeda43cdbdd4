// How much of a mask a tiling works off, for cost models.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

struct SequenceSize {
  int64_t rows = 0;
  int64_t targets = 0;   // 0 without `num_targets`
  int64_t first = 0;     // the first row that q has
  int64_t contexts = 0;  // 0 without `num_contexts`

  bool operator==(const SequenceSize&) const = default;
};

// Cost models count tiles of sequences up to this length: longer ones take long to count and change no choice.
inline constexpr int64_t kLongestCounted = int64_t{1} << 17;

// A sequence as cost models assume it: the numbers of targets and contexts are known at launch only, and small.
SequenceSize assumed_sequence(const HstuAttentionParams& params, double rows);

// A sequence of the mean length, with as many rows in q as the problem says.
SequenceSize assumed_sequence(const AttentionSpec& spec, const ProblemSize& size);

// Those of `size.lengths`, else sequences whose lengths are spread evenly, as far to both sides of the mean as they can
// be: cost models take means over them.
std::vector<SequenceSize> assumed_sequences(const HstuAttentionParams& params, const ProblemSize& size);

// How many sequences of the assumed batch balance. It has 256 whatever their length; a real one has fewer the longer
// they are: so many as have 256k rows, and at least 16. Of lengths that are known the mean counts.
double balanced_batch(const ProblemSize& size);

// How many KV tiles each row tile of a sequence visits, first tile first: those with a column that some row of the
// tile may see. KV tiles begin at the first such column, as they do in the kernels.
std::vector<int64_t> count_kv_tiles(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                                    int64_t block_n);

// The same of tiles that have rows of consecutive sequences: of `sequences` one after the other, over and over again,
// so that tiles begin at many places of each.
struct PackedTileCounts {
  std::vector<int64_t> kv_tiles;  // of each tile
  int64_t sequences = 0;          // whose rows they are
};
PackedTileCounts count_packed_kv_tiles(const HstuAttentionParams& params, const std::vector<SequenceSize>& sequences,
                                       int64_t block_m, int64_t block_n);

// How many columns the last `rows_of_q` rows of a sequence see.
int64_t count_columns_of_last_rows(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t rows_of_q);

// Sums over the row tiles of one (sequence, head).
struct TileCounts {
  double row_tiles = 0;
  double kv_tiles = 0;
};
TileCounts count_tiles(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                       int64_t block_n);

}  // namespace hstujit
