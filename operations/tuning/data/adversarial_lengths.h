// Lengths at which a kernel over jagged rows is most likely to be wrong.
#pragma once

#include <cstdint>
#include <limits>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// Sequences of 0 and 1 rows, of every usual tile size and one row more and less, and one long sequence among tiny ones,
// none longer than `max_seq_len`; targets from none to all rows when the op takes them. Where it takes the last rows of
// sequences only: from none of them to more than a sequence has, or, where all sequences have as many, one of five
// numbers by seed. The long sequence is cut so that the float64 reference stays affordable, and max_seq_len itself
// where tensors have that many rows and columns for each sequence. The same arguments give the same lengths. A batch of
// at most `max_sequences`, at least 1, has the long sequence and others by seed.
Lengths adversarial_lengths(const OpSpec& spec, Direction direction, int64_t max_seq_len, uint64_t seed,
                            int64_t max_sequences = std::numeric_limits<int64_t>::max());

}  // namespace hstujit
