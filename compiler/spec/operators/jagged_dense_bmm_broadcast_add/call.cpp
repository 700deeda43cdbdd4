#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_jagged_dense_bmm_broadcast_add(CallDeclaration& call) {
  call.size("k", {{"jagged", 1}, {"dense", 1, "transpose_dense"}, {"dense", 2, "", "transpose_dense"}})
      .size("n", {{"dense", 2, "transpose_dense"}, {"dense", 1, "", "transpose_dense"}, {"bias dout", 1}})
      .dtype("dtype", "bias jagged dense dout")
      .dtype("offsets_dtype", "seq_offsets")
      .presence("bias", "bias")
      .keywords("precision elementwise transpose_dense")
      .of_steps("alignment")
      .shaping("elementwise")
      .gradients("bias jagged dense")
      .differentiable("out")
      .passed_on("bias", "out", "", "elementwise", "true");
}

}  // namespace hstujit
