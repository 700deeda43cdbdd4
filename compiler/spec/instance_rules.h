// What numbers of an entry of "ops" may be: for its reader and for the schema.
#pragma once

#include <string_view>

#include "compiler/spec/fields.h"
#include "compiler/spec/limits.h"

namespace hstujit {

inline constexpr FieldRules kLengthRules{"length", "rows of a sequence", 0, kMaxSeqLen};
inline constexpr FieldRules kMaxSeqLenRules{"max_seq_len", "no sequence is longer", 1, kMaxSeqLen};
inline constexpr FieldRules kDeltaLenRules{"delta_len", "rows of q of a sequence", 0, kMaxSeqLen};
inline constexpr FieldRules kCountRules{"count", "rows of a sequence that are targets, or contexts", 0, kMaxSeqLen};
// Flags of an operator that an entry may give as such a count, for generated inputs.
inline constexpr std::string_view kCountedFields[] = {"num_targets", "num_contexts"};
inline constexpr FieldRules kRowsRules{"rows", "rows of the whole problem", 0, kMaxSeqLen};

}  // namespace hstujit
