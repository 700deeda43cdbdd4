#include "compiler/spec/call/declaration.h"

namespace hstujit {

// The result may have more columns than x, and with group_norm weights have an element for each head.
void call_hstu_norm_mul_dropout(CallDeclaration& call) {
  row_call(call, "x u", "weight bias")
      .size("width", {{"x u", 1}, {"dout", 1, "concat_u concat_x"}, {"weight bias", 0, "group_norm"}})
      .presence("dropout", "dropout_ratio seed offset")
      .presence("seed_tensor", "seed_tensor", "seed", "dropout")
      .presence("row_numbers", "row_numbers", "", "dropout")
      .keywords("norm group_norm heads mul_u_activation silu_u concat_u concat_x")
      .shaping("norm")
      .usual("eps", 1e-5);
}

}  // namespace hstujit
