// take_last_rows -> hstu.row, which goes through the last rows.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/take_last_rows/last_rows.h"
#include "compiler/spec/operators/take_last_rows/spec.h"

namespace hstujit {

Result<Module> build_take_last_rows(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const TakeLastRowsSpec&>(spec));
  RowIndex& at = row.index();
  Ops& ops = at.ops();
  const Dimension all = all_rows();
  const mlir::Value earlier = ops.sub(at.rows(all), at.rows(last_rows()));
  const mlir::Value position = ops.add(earlier, at.position());
  at.find("values", at.row_at(all, position, ops.ge(position, ops.integer(0))));
  return row.finish({row.input("values")});
}

}  // namespace hstujit
