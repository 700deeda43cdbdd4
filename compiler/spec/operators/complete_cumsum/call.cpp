#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_complete_cumsum() { return CallDeclaration().dtype("dtype", "lengths"); }

}  // namespace hstujit
