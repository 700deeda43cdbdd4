// layer_norm -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/layer_norm/spec.h"

namespace hstujit {

Result<Module> build_layer_norm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const LayerNormSpec&>(spec);
  RowBuilder row(context, norm);
  Ops& ops = row.ops();
  mlir::Value y = row.layer_norm(row.input("x"), row.input("eps"));
  if (norm.params().weight) y = ops.mulf(y, row.input("weight"));
  if (norm.params().bias) y = ops.addf(y, row.input("bias"));
  return row.finish({y});
}

}  // namespace hstujit
