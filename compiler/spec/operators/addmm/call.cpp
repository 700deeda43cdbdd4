#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_addmm(CallDeclaration& call) {
  call.size("k", {{"mat1", 1}, {"mat2", 0, "transpose_mat2"}, {"mat2", 1, "", "transpose_mat2"}})
      .size("n", {{"mat2", 1, "transpose_mat2"}, {"mat2", 0, "", "transpose_mat2"}, {"dout", 1}})
      .dtype("dtype", "input mat1 mat2 dout")
      .form("input", "beta")
      .keywords("precision typical_rows transpose_mat2 silu_columns")
      .of_steps("alignment")
      .forward_only("silu_columns")
      .gradients("input mat1 mat2")
      .differentiable("out")
      .passed_on("input", "out", "beta", "input", "matrix");
}

}  // namespace hstujit
