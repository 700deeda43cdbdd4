#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_addmm_wgrad(CallDeclaration& call) {
  call.size("k", {{"mat1", 1}})
      .size("n", {{"dout", 1}})
      .dtype("dtype", "mat1 dout")
      .presence("bias", "beta")
      .keywords("precision typical_rows transpose_mat2")
      .of_steps("alignment");
}

}  // namespace hstujit
