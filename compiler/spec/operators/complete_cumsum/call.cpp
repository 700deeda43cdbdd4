#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_complete_cumsum(CallDeclaration& call) { call.dtype("dtype", "lengths"); }

}  // namespace hstujit
