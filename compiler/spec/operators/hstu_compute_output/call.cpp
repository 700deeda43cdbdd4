#include "compiler/spec/operators/stu_layer/call.h"

namespace hstujit {

void call_hstu_compute_output(CallDeclaration& call) {
  declare_stu(call);
  declare_stu_output(call);
  call.size("heads", {})
      .size("hidden_dim", {})
      .dtype("dtype", "attn u x output_weight y dout")
      .keywords("precision training silu_u mul_u_activation")
      .shaping("training")
      .forward_only("training")
      .gradients("attn u output_norm_weight output_norm_bias output_weight")
      .differentiable("out")
      .passed_on("x", "out");
}

}  // namespace hstujit
