#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_silu(CallDeclaration& call) { row_call(call, "x"); }

}  // namespace hstujit
