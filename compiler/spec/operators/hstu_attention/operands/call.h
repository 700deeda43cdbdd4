// Where calls say the fields of operands.
#pragma once

#include "compiler/spec/call/declaration.h"

namespace hstujit {

// The fields about operands.
CallDeclaration& operand_call(CallDeclaration& call);

// Adds the operands whose type is the parameter dtype to the tensors of that type, and those with gradients to the
// inputs that have some.
CallDeclaration& operand_tensors(CallDeclaration& call);

}  // namespace hstujit
