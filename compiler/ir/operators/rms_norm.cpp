// rms_norm -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/rms_norm/spec.h"

namespace hstujit {

Result<Module> build_rms_norm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const RmsNormSpec&>(spec);
  RowBuilder row(context, norm);
  mlir::Value y = row.rms_norm(row.input("x"), row.input("eps"));
  if (norm.params().weight) y = row.ops().mulf(y, row.input("weight"));
  if (norm.params().silu) y = row.ops().silu(row.named("z", y));
  return row.finish({y});
}

}  // namespace hstujit
