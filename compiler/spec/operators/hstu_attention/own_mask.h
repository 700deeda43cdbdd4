// Masks that users write as a condition: HstuAttentionParams::mask.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// No sequence of an instance with a mask of its own is longer: what kernels compute for the mask fits into `int`.
inline constexpr int64_t kMaxOwnMaskSeqLen = int64_t{1} << 20;
// The largest integer that a mask or a score may come to, with room for the order in which the compiler adds terms up.
inline constexpr int64_t kLargestOwnInteger = int64_t{1} << 30;

// An expression of row, column, n, t and integers of operands, in the words of docs/expressions.md, or what is wrong
// and at which column of the text.
Result<Expression> parse_mask(std::string_view text, const std::vector<Operand>& operands = {});
// The same of an instance's mask, which it takes.
Expression own_mask(const HstuAttentionParams& params);

// Whether a mask reads operands, and what then bounds it: a condition of row, column, n and t that holds wherever the
// mask may hold, or one that holds only where it does. Comparisons of what is read are unknown.
bool reads_operands(const Expression& mask);
Expression without_reads(const Expression& mask, bool most);

// Brings texts that say the same in the same order to one: of a mask that parse_mask takes.
std::string canonical_mask(std::string_view text, const std::vector<Operand>& operands = {});

// The fields of a mask that say what the text says, with all other parameters as they are; nothing where none do that
// are looked for: no mask, a causal one, one with a window, and semi-local attention without targets.
std::optional<HstuAttentionParams> fields_of_mask(const HstuAttentionParams& params);

}  // namespace hstujit
