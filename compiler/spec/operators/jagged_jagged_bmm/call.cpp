#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_jagged_jagged_bmm() {
  return CallDeclaration()
      .size("k", {{"left", 1}})
      .size("n", {{"right", 1}})
      .dtype("dtype", "left right")
      .dtype("offsets_dtype", "seq_offsets")
      .keywords("precision transpose_out bias")
      .shaping("bias");
}

}  // namespace hstujit
