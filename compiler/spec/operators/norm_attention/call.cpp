#include "compiler/spec/operators/hstu_attention/call.h"

namespace hstujit {

void call_norm_attention(CallDeclaration& call) {
  attention_call(call)
      .size("heads", {{"dout", 1}})
      .size("hidden_dim", {{"dout", 2}})
      .dtype("dtype", "x dout rab")
      .dtype("weight_dtype", "weight bias")
      .presence("weight", "weight")
      .presence("bias", "bias")
      .keywords("norm")
      .gradients("x weight bias rab attn_scale")
      .usual("eps", 1e-5)
      .letter("D", "x", 1);
}

}  // namespace hstujit
