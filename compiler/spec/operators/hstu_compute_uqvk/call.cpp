#include "compiler/spec/operators/stu_layer/call.h"

namespace hstujit {

void call_hstu_compute_uqvk(CallDeclaration& call) {
  declare_stu(call);
  call.size("heads", {})
      .size("attn_dim", {})
      .size("hidden_dim", {})
      .dtype("dtype", "x uvqk_weight uvqk_bias normed_x duvqk")
      .presence("uvqk_bias", "uvqk_bias")
      .presence("recompute_normed_x", "input_norm_bias", "normed_x")
      .keywords("precision training silu_uvqk")
      .shaping("training")
      .forward_only("training")
      .gradients("x input_norm_weight input_norm_bias uvqk_weight uvqk_bias")
      .differentiable("uvqk")
      .letter("P", "uvqk_weight", -1);
}

}  // namespace hstujit
