// Short sequences: batches whose mean length is at most that of a tile. Kernels whose tiles have rows of several
// sequences (pack_sequences) are fastest for them, and slower than others for long ones.
//
// The one who launches, the one who tunes and the cost model all ask here.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/spec/config.h"

namespace hstujit {

// Rows of a tile, and of the longest mean: measured on an H100, sequences of 65 rows each take a packed kernel two
// thirds of the time, those of 64 rows as long, and a mean of 103 rows more (docs/journal.md, entry 56).
inline constexpr int64_t kShortMeanRows = 64;

// Sequences of a batch that stands for those of short ones: more than kernels sort by length.
inline constexpr int64_t kShortBatch = 4096;

// Whether a batch of so many sequences and rows has short ones. An empty batch has none.
inline bool has_short_sequences(int64_t sequences, int64_t rows) {
  return sequences > 0 && rows / kShortMeanRows + (rows % kShortMeanRows > 0 ? 1 : 0) <= sequences;
}

// Lengths of `count` sequences that stand for such a batch, ascending: those of a power law from 1 to `longest`, whose
// mean is an eighth of that and 48 at most, as the batches that were measured have it. The same on every machine.
std::vector<int64_t> typical_short_lengths(int64_t longest, size_t count);

// The batch that a kernel for short sequences is timed on: the instance's own where its lengths are given, else one of
// typical ones in an arbitrary order.
Lengths make_short_lengths(const Instance& instance, int64_t max_seq_len);

}  // namespace hstujit
