// Call declarations of operators that attend.
#pragma once

#include "compiler/spec/call/declaration.h"

namespace hstujit {

// All fields of HstuAttentionParams. The heads and their dimensions are sizes of no axis by themselves.
CallDeclaration& attention_call(CallDeclaration& call);

// The same of q, k, v and out.
CallDeclaration& attention_call_of_heads(CallDeclaration& call);

}  // namespace hstujit
