#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_jagged_dense_broadcast_add(CallDeclaration& call) {
  sequence_call(call, "jagged dense").gradients("dense").passed_on("jagged", "out");
}

}  // namespace hstujit
