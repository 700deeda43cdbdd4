#include "compiler/spec/operators/hstu_attention/operands/call.h"

namespace hstujit {

CallDeclaration& operand_call(CallDeclaration& call) {
  return call.size("rab_heads", {{"rab", 1}})
      .size("attn_func", {{"attn_func", 1}})
      .size("attn_func_heads", {{"attn_func", 0}})
      .presence("num_targets", "num_targets")
      .presence("num_contexts", "num_contexts")
      .form("attn_scale")
      .wanted("drab", "rab")
      .wanted("dattn_scale", "attn_scale")
      .declares("operands");
}

CallDeclaration& operand_tensors(CallDeclaration& call) {
  return call.more_of_dtype("dtype", "rab").more_gradients("rab attn_scale");
}

}  // namespace hstujit
