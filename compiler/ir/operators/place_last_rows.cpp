// place_last_rows -> hstu.row, which goes through all rows.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/place_last_rows/spec.h"
#include "compiler/spec/operators/take_last_rows/last_rows.h"

namespace hstujit {

Result<Module> build_place_last_rows(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const PlaceLastRowsSpec&>(spec));
  RowIndex& at = row.index();
  Ops& ops = at.ops();
  const Dimension last = last_rows();
  const mlir::Value earlier = ops.sub(at.rows(all_rows()), at.rows(last));
  const mlir::Value position = ops.sub(at.position(), earlier);
  at.find("values", at.row_at(last, position, ops.ge(position, ops.integer(0))));
  return row.finish({row.input("values")});
}

}  // namespace hstujit
