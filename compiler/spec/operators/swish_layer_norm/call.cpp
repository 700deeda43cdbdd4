#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_swish_layer_norm() {
  return row_call("x", "weight bias").presence("weight", "weight").presence("bias", "bias").usual("eps", 1e-5);
}

}  // namespace hstujit
