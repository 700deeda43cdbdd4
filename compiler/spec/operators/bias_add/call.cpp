#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_bias_add(CallDeclaration& call) { row_call(call, "x", "bias").gradients("bias").passed_on("x", "out"); }

}  // namespace hstujit
