#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_bias_add() { return row_call("x", "bias").gradients("bias").passed_on({"x", "out"}); }

}  // namespace hstujit
