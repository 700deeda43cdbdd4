// Small batches: those of so few tiles that they leave a part of the device idle. Another kernel is best for them than
// for a batch that fills it.
//
// The one who launches, the one who tunes and the cost model all ask here. What is counted is tiles of 64 rows, the
// smallest ones that kernels for Hopper have. Up to as many as there are multiprocessors, each of them could have a
// second block for its tile; up to twice as many, all of them run at once, two or three to a multiprocessor, and the
// longest decides how long the launch takes. From there on they balance, as those of any large batch do.
#pragma once

#include "compiler/spec/config.h"

namespace hstujit {

// How many sequences a small batch has at most, where the longest one has `rows` rows; 0: one is too many, or the
// operator makes no difference.
int64_t max_small_batch(const OpSpec& spec, Direction direction, int64_t rows, int64_t sm_count);

// The batch that a kernel for small batches is timed on: the instance's own when that is one, else a single sequence
// of `max_seq_len` rows.
Lengths make_small_lengths(const Instance& instance, int64_t max_seq_len, int64_t max_sequences);

}  // namespace hstujit
