// bias_add -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/bias_add/spec.h"

namespace hstujit {

Result<Module> build_bias_add(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const BiasAddSpec&>(spec));
  const mlir::Value bias = row.ops().mulf(row.input("bias"), row.splat(row.input("beta")));
  return row.finish({row.ops().addf(row.input("x"), bias)});
}

}  // namespace hstujit
