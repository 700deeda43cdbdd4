// The mask's expression for one instance and sequence.
#pragma once

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// The mask of these parameters, of row, column, n, t and, where the instance takes num_contexts, c.
Expression bound_mask(const HstuAttentionParams& params);

// The same as kernels compute it: folded, otherwise as it is written.
Expression kernel_mask(const HstuAttentionParams& params);

// The mask for a sequence of n rows with t targets and c contexts, 0 <= t, c <= n: an expression of row and column.
Expression bound_mask(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t c = 0);

}  // namespace hstujit
