// jagged_dense_broadcast_add -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/jagged_dense_broadcast_add/spec.h"

namespace hstujit {

Result<Module> build_jagged_dense_broadcast_add(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const JaggedDenseBroadcastAddSpec&>(spec));
  row.index().find("dense", row.index().sequence());
  return row.finish({row.ops().addf(row.input("jagged"), row.input("dense"))});
}

}  // namespace hstujit
