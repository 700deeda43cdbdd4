#include "compiler/spec/operators/hstu_attention/call.h"

namespace hstujit {

void call_norm_attention(CallDeclaration& call) {
  attention_call(call)
      .size("heads", {{"dout", 1}})
      .size("hidden_dim", {{"dout", 2}})
      .dtype("weight_dtype", "weight bias")
      .presence("weight", "weight")
      .presence("bias", "bias")
      .keywords("norm")
      .gradients("x weight bias")
      .usual("eps", 1e-5)
      .letter("D", "x", 1);
  attention_tensors(call, "x dout");
}

}  // namespace hstujit
