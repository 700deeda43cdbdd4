// The functions of an attention operator's mask: mask_valid(row, col, n, t), and what is derived from its expression
// (compiler/expression/derive.h):
//
//   mask_tile(r0, r1, c0, c1, n, t) -> (full, visible)   over the rows [r0, r1] and the columns [c0, c1]
//   mask_columns(r0, r1, n, t) -> (lo, hi)               the columns [lo, hi) of [0, n) that some of the rows may see
//   mask_rows(c0, c1, n, t) -> (lo, hi)                  the rows that may see some of the columns
//   mask_row_bits(row, c0, n, t) -> word                 bit i says whether the row sees the column c0 + i
//   mask_column_bits(col, r0, n, t) -> word              bit i says whether the row r0 + i sees the column
//
// Where each sequence has its own number of contexts, c follows t in all of them; and where kernels know a sequence by
// its number, for then they have both in one struct. Where the mask reads operands, mask_valid does (hstu.read). The
// others are bounds of it, and there are no functions of words.
//
// A function of words is missing where an operation of the mask has no rule: pairs are then looked at one by one.
#pragma once

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "mlir/IR/Builders.h"

namespace hstujit {

// At the builder's place. `mask` is an expression of row, column, n, t and, with `contexts`, c in the form of kernels.
// With `reading` it bounds that from above.
void build_mask_functions(mlir::OpBuilder& builder, mlir::Location location, const Expression& mask, bool contexts,
                          const std::vector<Operand>& operands, const ReadingMask* reading);

}  // namespace hstujit
