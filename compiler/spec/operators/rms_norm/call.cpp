#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_rms_norm() {
  return row_call("x", "weight")
      .dtype("dtype", "x dout dresidual")
      .presence("weight", "weight")
      .presence("residual", "dresidual")
      .keywords("silu")
      .usual("eps", 1e-5);
}

}  // namespace hstujit
