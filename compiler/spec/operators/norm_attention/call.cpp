#include "compiler/spec/operators/hstu_attention/call.h"

#include "compiler/spec/operators/hstu_attention/operands/call.h"

namespace hstujit {

void call_norm_attention(CallDeclaration& call) {
  attention_call(call)
      .size("heads", {{"dout", 1}})
      .size("hidden_dim", {{"dout", 2}})
      .dtype("dtype", "x dout")
      .dtype("weight_dtype", "weight bias")
      .presence("weight", "weight")
      .presence("bias", "bias")
      .keywords("norm")
      .gradients("x weight bias")
      .usual("eps", 1e-5)
      .letter("D", "x", 1);
  operand_tensors(call);
}

}  // namespace hstujit
