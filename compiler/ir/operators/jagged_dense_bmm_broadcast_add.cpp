// jagged_dense_bmm_broadcast_add -> hstu.gemm.
#include "compiler/ir/gemm_builder.h"
#include "compiler/spec/operators/jagged_dense_bmm_broadcast_add/spec.h"

namespace hstujit {

Result<Module> build_jagged_dense_bmm_broadcast_add(mlir::MLIRContext& context, const OpSpec& spec) {
  return build_gemm(context, static_cast<const JaggedDenseBmmBroadcastAddSpec&>(spec),
                    [](Ops& ops, mlir::Value sum, mlir::Value, const std::vector<mlir::Value>& operands) {
                      return operands.empty() ? sum : ops.addf(sum, operands[0]);
                    });
}

}  // namespace hstujit
