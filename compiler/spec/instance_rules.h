// What numbers of an entry of "ops" may be: for its reader and for the schema.
#pragma once

#include "compiler/spec/fields.h"
#include "compiler/spec/limits.h"

namespace hstujit {

inline constexpr FieldRules kLengthRules{"length", "rows of a sequence", 0, kMaxSeqLen};
inline constexpr FieldRules kMaxSeqLenRules{"max_seq_len", "no sequence is longer", 1, kMaxSeqLen};
inline constexpr FieldRules kDeltaLenRules{"delta_len", "rows of q of a sequence", 0, kMaxSeqLen};
inline constexpr FieldRules kNumTargetsRules{"num_targets", "targets of a sequence", 0, kMaxSeqLen};
inline constexpr FieldRules kRowsRules{"rows", "rows of the whole problem", 0, kMaxSeqLen};

}  // namespace hstujit
