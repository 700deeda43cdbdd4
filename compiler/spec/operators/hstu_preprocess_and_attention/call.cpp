#include "compiler/spec/operators/hstu_attention/call.h"

#include "compiler/spec/operators/stu_layer/call.h"

namespace hstujit {

void call_hstu_preprocess_and_attention(CallDeclaration& call) {
  attention_call(call);
  declare_stu(call);
  declare_stu_input(call);
  call.size("heads", {{"dattn", 1}})
      .size("hidden_dim", {{"dattn", 2}})
      .keywords("alignment training")
      .shaping("training")
      .forward_only("training")
      .gradients("x input_norm_weight input_norm_bias uvqk_weight uvqk_bias")
      .differentiable("u attn");
  attention_tensors(call, "x uvqk_weight uvqk_bias uvqk normed_x du dattn");
}

}  // namespace hstujit
