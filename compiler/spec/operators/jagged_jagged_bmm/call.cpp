#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_jagged_jagged_bmm(CallDeclaration& call) {
  call.size("k", {{"left", 1}})
      .size("n", {{"right", 1}})
      .dtype("dtype", "left right")
      .dtype("offsets_dtype", "seq_offsets")
      .keywords("precision transpose_out bias")
      .of_steps("alignment")
      .shaping("bias");
}

}  // namespace hstujit
