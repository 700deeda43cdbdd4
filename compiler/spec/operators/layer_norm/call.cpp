#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_layer_norm(CallDeclaration& call) {
  row_call(call, "x", "weight bias")
      .dtype("dtype", "x dout dresidual")
      .presence("weight", "weight")
      .presence("bias", "bias")
      .presence("residual", "dresidual")
      .usual("eps", 1e-5);
}

}  // namespace hstujit
