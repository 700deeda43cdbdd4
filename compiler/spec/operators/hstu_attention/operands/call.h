// Where calls say the fields of operands.
#pragma once

#include "compiler/spec/call/declaration.h"

namespace hstujit {

// The fields of operand_fields(), and num_targets.
CallDeclaration& operand_call(CallDeclaration& call);

}  // namespace hstujit
