// rms_norm -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/rms_norm/spec.h"

namespace hstujit {

Result<Module> build_rms_norm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const RmsNormSpec&>(spec);
  RowBuilder row(context, norm);
  Ops& ops = row.ops();
  const mlir::Value x = row.input("x");
  const mlir::Value square = row.named("mean_square", row.mean(ops.mulf(x, x)));
  const mlir::Value rstd = row.named("rstd", ops.rsqrt(ops.addf(square, row.input("eps"))));
  mlir::Value y = row.named("normalized", ops.mulf(x, row.splat(rstd)));
  if (norm.params().weight) y = ops.mulf(y, row.input("weight"));
  if (norm.params().silu) y = row.silu(row.named("z", y));
  return row.finish({y});
}

}  // namespace hstujit
