// addmm_wgrad -> hstu.gemm.
#include "compiler/ir/gemm_builder.h"
#include "compiler/spec/operators/addmm_wgrad/spec.h"

namespace hstujit {

Result<Module> build_addmm_wgrad(mlir::MLIRContext& context, const OpSpec& spec) {
  return build_gemm(context, static_cast<const AddmmWgradSpec&>(spec),
                    [](Ops& ops, mlir::Value sum, mlir::Value, const std::vector<mlir::Value>& operands) {
                      return ops.mulf(operands[0], sum);
                    });
}

}  // namespace hstujit
