#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_layer_norm() {
  return row_call("x", "weight bias")
      .dtype("dtype", "x dout dresidual")
      .presence("weight", "weight")
      .presence("bias", "bias")
      .presence("residual", "dresidual")
      .usual("eps", 1e-5);
}

}  // namespace hstujit
