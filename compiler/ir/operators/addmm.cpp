// addmm -> hstu.gemm.
#include "compiler/ir/gemm_builder.h"
#include "compiler/spec/operators/addmm/spec.h"

namespace hstujit {

Result<Module> build_addmm(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& addmm = static_cast<const AddmmSpec&>(spec);
  return build_gemm(context, addmm,
                    [&](Ops& ops, mlir::Value sum, mlir::Value column, const std::vector<mlir::Value>& operands) {
                      mlir::Value element = ops.mulf(operands[0], sum);
                      if (operands.size() > 1) element = ops.addf(element, ops.mulf(operands[2], operands[1]));
                      if (!column) return element;
                      const mlir::Value activated = ops.lt(column, ops.integer(addmm.params().silu_columns));
                      return ops.select(activated, ops.silu(element), element);
                    });
}

}  // namespace hstujit
