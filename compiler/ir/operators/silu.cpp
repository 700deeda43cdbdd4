// silu -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/silu/spec.h"

namespace hstujit {

Result<Module> build_silu(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const SiluSpec&>(spec));
  return row.finish({row.ops().silu(row.input("x"))});
}

}  // namespace hstujit
