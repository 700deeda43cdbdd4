// layer_norm -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/layer_norm/spec.h"

namespace hstujit {

Result<Module> build_layer_norm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const LayerNormSpec&>(spec);
  RowBuilder row(context, norm);
  Ops& ops = row.ops();
  const mlir::Value x = row.input("x");
  const mlir::Value mean = row.named("mean", row.mean(x));
  const mlir::Value centered = row.named("centered", ops.subf(x, row.splat(mean)));
  const mlir::Value variance = row.named("variance", row.mean(ops.mulf(centered, centered)));
  const mlir::Value rstd = row.named("rstd", ops.rsqrt(ops.addf(variance, row.input("eps"))));
  mlir::Value y = row.named("normalized", ops.mulf(centered, row.splat(rstd)));
  if (norm.params().weight) y = ops.mulf(y, row.input("weight"));
  if (norm.params().bias) y = ops.addf(y, row.input("bias"));
  return row.finish({y});
}

}  // namespace hstujit
