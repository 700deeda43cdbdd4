// Call declarations of operators that attend.
#pragma once

#include <string>

#include "compiler/spec/call/declaration.h"

namespace hstujit {

// All fields of HstuAttentionParams. The heads and their dimensions are sizes of no axis by themselves.
CallDeclaration& attention_call(CallDeclaration& call);

// The same of q, k, v and out.
CallDeclaration& attention_call_of_heads(CallDeclaration& call);

// The parameter dtype is the type of `tensors` and of the operands that have no type of their own. The gradients of
// operands follow those of other inputs; an operator that declares none of these has no backward.
CallDeclaration& attention_tensors(CallDeclaration& call, std::string tensors);

}  // namespace hstujit
