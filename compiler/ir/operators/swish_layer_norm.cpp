// swish_layer_norm -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/swish_layer_norm/spec.h"

namespace hstujit {

Result<Module> build_swish_layer_norm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const SwishLayerNormSpec&>(spec);
  RowBuilder row(context, norm);
  Ops& ops = row.ops();
  const mlir::Value x = row.input("x");
  mlir::Value z = row.layer_norm(x, row.input("eps"));
  if (norm.params().weight) z = ops.mulf(z, row.input("weight"));
  if (norm.params().bias) z = ops.addf(z, row.input("bias"));
  return row.finish({ops.mulf(x, ops.sigmoid(row.named("z", z)))});
}

}  // namespace hstujit
