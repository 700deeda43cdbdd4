#include "compiler/ir/jagged_sides.h"

namespace hstujit {

void find_sides(RowIndex& at, const JaggedSidesParams& params, std::string_view prefix_argument) {
  Ops& ops = at.ops();
  const mlir::Value zero = ops.integer(0), rows_left = at.rows(params.left());
  mlir::Value prefix = zero, before_left = ops.truth(false);
  if (params.prefix) {
    prefix = ops.min(at.integer(prefix_argument), at.rows(params.right()));
    before_left = ops.lt(at.position(), prefix);
  }
  const mlir::Value on_left = ops.sub(at.position(), prefix);
  const mlir::Value is_left = ops.both(ops.ge(on_left, zero), ops.lt(on_left, rows_left));
  const mlir::Value on_right = ops.select(before_left, at.position(), ops.sub(at.position(), rows_left));
  at.find("left", at.row_at(params.left(), on_left, is_left));
  at.find("right", at.row_at(params.right(), on_right, ops.negate(is_left)));
}

void find_left(RowIndex& at, const JaggedSidesParams& params, std::string_view prefix_argument) {
  Ops& ops = at.ops();
  const mlir::Value first = ops.add(at.first_row(params.left()), at.first_row(params.right()));
  mlir::Value position = at.position();
  if (params.prefix) position = ops.add(position, ops.min(at.integer(prefix_argument), at.rows(params.right())));
  at.find("values", ops.add(first, position));
}

}  // namespace hstujit
