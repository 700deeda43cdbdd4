// Which rows of a sequence the tensors of an attention operator hold.
#pragma once

#include "compiler/spec/signature.h"

namespace hstujit {

// Which rows of a sequence q and out hold.
enum class QueryRows {
  kAll,
  kLast,        // the last ones, as many of each sequence: max_delta_len
  kLastJagged,  // the last ones, as many as seq_offsets_q says, at most max_delta_len
};

// The first axis of k and v, which have all rows, and that of q and out.
Dimension key_rows();
Dimension query_rows(QueryRows rows);

}  // namespace hstujit
