#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_dense_to_jagged(CallDeclaration& call) { sequence_call(call, "dense"); }

}  // namespace hstujit
