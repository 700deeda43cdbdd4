// Conditions and real numbers as users write them: docs/expressions.md has the grammar.
#pragma once

#include <span>
#include <string_view>

#include "compiler/expression/expression.h"
#include "compiler/support/status.h"

namespace hstujit {

inline constexpr size_t kMaxExpressionLength = 4096;  // bytes
inline constexpr int kMaxExpressionDepth = 64;        // of what stands within one another
inline constexpr int64_t kMaxExpressionParts = 512;   // numbers, names, operators and functions

// A name is that of a number, or of an operand that is read as it is, at an index, or at the pair: `slope`,
// `by_age[row - col]`, `bias[row, col]`; or at the row or the column alone: `doc[row]`.
enum class Reads : uint8_t { kValue, kElement, kAtIndex, kAtPair, kAtRowOrColumn };

// A number that a user may name, and the symbol of the expression that it is. Integers of operands have 64 bits.
struct ExpressionName {
  std::string_view name;
  std::string_view symbol;
  bool real = false;
  Reads reads = Reads::kValue;
};

// Nothing is folded. Symbols are in the order of `names`, all of them. kInvalidConfig says what is wrong and at which
// column, counted from 1.
Result<Expression> parse_condition(std::string_view text, std::span<const ExpressionName> names);

// The same of a real number, which may have all of functions.h and read operands. It has no nodes that the number is
// not made of.
Result<Expression> parse_real(std::string_view text, std::span<const ExpressionName> names);

// Whether texts have the word for a function or an operator: no operand has such a name.
bool is_expression_word(std::string_view word);

// The text of an expression that was parsed, with the spaces and parentheses that it needs and no others: texts that
// differ in these alone have the same.
std::string to_text(const Expression& expression, std::span<const ExpressionName> names);

}  // namespace hstujit
