#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_silu() { return row_call("x"); }

}  // namespace hstujit
