// The mask of the attention operators, said once: compiler/ir/attention.cpp builds the IR from it, and what counts work
// and tiles evaluates it. The reference has its own (mask.cpp), as the check on this one.
#pragma once

#include <optional>

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// valid(row, column) for 0 <= row < n and column >= 0. Symbols: row, column, n and t, in this order, and the flags and
// numbers of a mask under the names of HstuAttentionParams.
const Expression& attention_mask();

// Semi-local attention that stands for the intervals of attn_func, which a launch alone knows, where work and tiles are
// counted and inputs are drawn: a row sees the first columns, and so many up to its own.
struct AssumedIntervals {
  static constexpr int64_t kFirst = 64, kLocal = 512;
};

// The same of an instance: attention_mask(), or params.mask, which is valid, for the columns of the sequence. With
// attn_func it is that of AssumedIntervals: models take such tensors for it.
// Where a mask reads operands, it is what bounds the mask from above.
Expression mask_of(const HstuAttentionParams& params);

// A mask that reads operands: what bounds it from below, and the mask as it is, which holds for the columns of the
// sequence. Nothing of others.
struct ReadingMask {
  Expression least, exact;
};
std::optional<ReadingMask> reading_mask_of(const HstuAttentionParams& params);

}  // namespace hstujit
