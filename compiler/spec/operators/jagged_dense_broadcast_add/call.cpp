#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_jagged_dense_broadcast_add() {
  return sequence_call("jagged dense").gradients("dense").passed_on({"jagged", "out"});
}

}  // namespace hstujit
