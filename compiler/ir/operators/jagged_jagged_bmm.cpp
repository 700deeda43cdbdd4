// jagged_jagged_bmm -> hstu.gemm.
#include "compiler/ir/gemm_builder.h"
#include "compiler/spec/operators/jagged_jagged_bmm/spec.h"

namespace hstujit {

Result<Module> build_jagged_jagged_bmm(mlir::MLIRContext& context, const OpSpec& spec) {
  return build_gemm(context, static_cast<const JaggedJaggedBmmSpec&>(spec),
                    [](Ops&, mlir::Value sum, mlir::Value, const std::vector<mlir::Value>&) { return sum; });
}

}  // namespace hstujit
