#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_swish_layer_norm(CallDeclaration& call) {
  row_call(call, "x", "weight bias").presence("weight", "weight").presence("bias", "bias").usual("eps", 1e-5);
}

}  // namespace hstujit
