#include "compiler/emit/expression.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace hstujit {

namespace {

Precedence tighter(Precedence precedence) { return static_cast<Precedence>(static_cast<int>(precedence) + 1); }

template <typename Real>
std::string shortest_decimal(Real value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

CExpression binary(const CExpression& a, std::string_view symbol, const CExpression& b, Precedence precedence,
                   bool associative) {
  // Compilers warn about && within || without parentheses, and people misread it; so it is with operators of bits.
  const bool of_bits = precedence >= Precedence::kBitOr && precedence <= Precedence::kBitAnd;
  const Precedence least = of_bits                         ? Precedence::kSum
                           : precedence == Precedence::kOr ? Precedence::kEquality
                                                           : precedence;
  const auto side = [&](const CExpression& x, bool right) {
    if (x.precedence == precedence && (!right || associative)) return x.text;
    return x.at(right ? (least == precedence ? tighter(precedence) : least) : least);
  };
  return {fmt::format("{} {} {}", side(a, false), symbol, side(b, true)), precedence};
}

CExpression call(std::string_view function, const std::vector<CExpression>& arguments) {
  std::string text(function);
  text += '(';
  const char* separator = "";
  for (const CExpression& argument : arguments) {
    text += separator + argument.text;
    separator = ", ";
  }
  return {text + ')', Precedence::kPrimary};
}

CExpression prefix(std::string_view symbol, const CExpression& a) {
  // "--x" would be a decrement.
  const bool repeats = !a.text.empty() && a.precedence == Precedence::kUnary && a.text.front() == symbol.front();
  return {std::string(symbol) + (repeats ? "(" + a.text + ")" : a.at(Precedence::kUnary)), Precedence::kUnary};
}

CExpression conditional(const CExpression& condition, const CExpression& a, const CExpression& b) {
  return {fmt::format("{} ? {} : {}", condition.at(Precedence::kOr), a.at(Precedence::kOr), b.text),
          Precedence::kConditional};
}

std::string wrapped_call(std::string_view before, const std::vector<std::string>& arguments, std::string_view after) {
  constexpr size_t kWidth = 120;
  std::string text(before);
  text += '(';
  const size_t indent = text.size();
  size_t column = indent;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool last = i + 1 == arguments.size();
    const size_t length = arguments[i].size() + 1 + (last ? after.size() : 0);
    if (i > 0 && column + 1 + length > kWidth) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += arguments[i] + (last ? ")" : ",");
    column += arguments[i].size() + 1;
  }
  if (arguments.empty()) text += ')';
  return text.append(after);
}

std::string float_literal(float value) {
  if (!std::isfinite(value)) return fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(value));
  return shortest_decimal(value) + "f";
}

std::string double_literal(double value) { return shortest_decimal(value); }

}  // namespace hstujit
