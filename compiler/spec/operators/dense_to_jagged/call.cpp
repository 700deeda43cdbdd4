#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_dense_to_jagged() { return sequence_call("dense"); }

}  // namespace hstujit
