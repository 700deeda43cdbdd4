#include "compiler/spec/operators/hstu_attention/operands/call.h"

#include <string>

#include "compiler/spec/operators/hstu_attention/call.h"

namespace hstujit {

CallDeclaration& operand_call(CallDeclaration& call) {
  return call.size("rab_heads", {{"rab", 1}})
      .presence("num_targets", "num_targets")
      .form("attn_scale")
      .wanted("drab", "rab")
      .wanted("dattn_scale", "attn_scale");
}

CallDeclaration& attention_tensors(CallDeclaration& call, std::string tensors) {
  call.dtype("dtype", (tensors += " rab").c_str());
  if (call.gradients().empty()) return call;
  std::string inputs;
  for (const std::string& input : call.gradients()) inputs += input + " ";
  return call.gradients((inputs += "rab attn_scale").c_str());
}

}  // namespace hstujit
