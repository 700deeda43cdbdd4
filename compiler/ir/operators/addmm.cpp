// addmm -> hstu.gemm.
#include "compiler/ir/gemm_builder.h"
#include "compiler/spec/operators/addmm/spec.h"

namespace hstujit {

Result<Module> build_addmm(mlir::MLIRContext& context, const OpSpec& spec) {
  return build_gemm(context, static_cast<const AddmmSpec&>(spec),
                    [](Ops& ops, mlir::Value sum, const std::vector<mlir::Value>& operands) {
                      const mlir::Value product = ops.mulf(operands[0], sum);
                      return operands.size() == 1 ? product : ops.addf(product, ops.mulf(operands[2], operands[1]));
                    });
}

}  // namespace hstujit
