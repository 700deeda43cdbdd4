// C expressions with their precedence, so that parentheses stand where they are needed and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// The levels that are printed, binding tighter from first to last.
enum class Precedence {
  kConditional,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

struct CExpression {
  std::string text;
  Precedence precedence = Precedence::kPrimary;

  // The text, in parentheses unless it binds at least as tightly as `needed`.
  std::string at(Precedence needed) const { return precedence < needed ? "(" + text + ")" : text; }
};

// `associative`: a - b stays as it is on the right of this operator's own level, as in a + (b - c).
CExpression binary(const CExpression& a, std::string_view symbol, const CExpression& b, Precedence precedence,
                   bool associative);
CExpression call(std::string_view function, const std::vector<CExpression>& arguments);
CExpression prefix(std::string_view symbol, const CExpression& a);
CExpression conditional(const CExpression& condition, const CExpression& a, const CExpression& b);

// "before(" and the arguments and ")after", in lines of at most 120 characters, as clang-format breaks them.
std::string wrapped_call(std::string_view before, const std::vector<std::string>& arguments, std::string_view after);

// The shortest decimal text that reads back as exactly `value`, with the suffix f; not-a-number and infinities by their
// bits.
std::string float_literal(float value);
// The same of a finite double, without a suffix.
std::string double_literal(double value);

}  // namespace hstujit
