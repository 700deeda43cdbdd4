// The mask of the attention operators, said once: compiler/ir/attention.cpp builds the IR from it, and what counts work
// and tiles evaluates it. The reference has its own (mask.cpp), as the check on this one.
#pragma once

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// valid(row, column) for 0 <= row < n and column >= 0. Symbols: row, column, n and t, in this order, and the flags and
// numbers of a mask under the names of HstuAttentionParams.
const Expression& attention_mask();

// The same of an instance: attention_mask(), or params.mask, which is valid, for the columns of the sequence. With
// attn_func it is a semi-local mask, which counts of work and tiles assume: models take such tensors for it.
Expression mask_of(const HstuAttentionParams& params);

}  // namespace hstujit
