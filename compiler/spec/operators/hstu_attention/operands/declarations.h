// Today's operands of attention: those that the fields of a config ask for.
#pragma once

#include <string>
#include <vector>

#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// In the order of signatures.
std::vector<Operand> operands_of(const HstuAttentionParams& params);

// Adds what breaks the rules of operands' fields.
void check_operands(const HstuAttentionParams& params, const std::string& path, Mistakes& mistakes);

// Brings equal meanings of those fields to one form.
void make_canonical_operands(HstuAttentionParams& params);

}  // namespace hstujit
