#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_rms_norm(CallDeclaration& call) {
  row_call(call, "x", "weight")
      .dtype("dtype", "x dout dresidual")
      .presence("weight", "weight")
      .presence("residual", "dresidual")
      .keywords("silu")
      .usual("eps", 1e-5);
}

}  // namespace hstujit
