// Where a row of concat_2d_jagged and of split_2d_jagged is: on the left side or on the right one.
#pragma once

#include "compiler/ir/row_index.h"
#include "compiler/spec/operators/concat_2d_jagged/sides.h"

namespace hstujit {

// Finds the operands "left" and "right", one of which has the row.
void find_sides(RowIndex& at, const JaggedSidesParams& params, std::string_view prefix_argument);

// Finds the row of "values", which has both sides, for one of the left side.
void find_left(RowIndex& at, const JaggedSidesParams& params, std::string_view prefix_argument);

}  // namespace hstujit
