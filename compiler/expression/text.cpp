#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "compiler/expression/parse.h"

namespace hstujit {

namespace {

// From what binds least.
enum Binding : uint8_t { kOfOr, kOfAnd, kOfNot, kOfComparison, kOfSum, kOfProduct, kOfSign, kOfAtom };

// The shortest decimal of the number, which shows that it is real.
std::string real_text(double number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string text(digits.data(), end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  Printer(const Expression& expression, std::span<const ExpressionName> names)
      : expression_(expression), names_(names) {}

  // In parentheses where its operator binds less than `least`.
  std::string print(int index, Binding least) const {
    const auto [text, binding] = of(expression_.node(index));
    return binding < least ? fmt::format("({})", text) : text;
  }

 private:
  struct Printed {
    std::string text;
    Binding binding;
  };

  Printed infix(const Expression::Node& node, std::string_view sign, Binding binding, Binding right) const {
    return {fmt::format("{} {} {}", print(node.operands[0], binding), sign, print(node.operands[1], right)), binding};
  }
  Printed call(const Expression::Node& node, std::string_view function) const {
    std::string text = fmt::format("{}(", function);
    for (size_t i = 0; i < node.operands.size() && node.operands[i] >= 0; ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", print(node.operands[i], kOfOr));
    }
    return {text + ")", kOfAtom};
  }
  Printed comparison(const Expression::Node& node, std::string_view sign) const {
    return infix(node, sign, kOfSum, kOfSum);
  }

  Printed function(const Expression::Node& node) const {
    switch (node.function) {
      case Function::kReal: {  // follows from where it stands
        const Expression::Node& integer = expression_.node(node.operands[0]);
        return of(integer);
      }
      case Function::kNegate:
        return {fmt::format("-{}", print(node.operands[0], kOfSign)), kOfSign};
      case Function::kDivide:
        return infix(node, "/", kOfProduct, kOfSign);
      default:
        return call(node, info_of(node.function).name);
    }
  }

  Printed of(const Expression::Node& node) const {
    switch (node.op) {
      case Operator::kConstant:
        if (node.real) return {real_text(node.number), std::signbit(node.number) ? kOfSign : kOfAtom};
        if (node.boolean) return {node.value != 0 ? "true" : "false", kOfAtom};
        return {fmt::format("{}", node.value), node.value < 0 ? kOfSign : kOfAtom};
      case Operator::kSymbol:
        return {std::string(name_of(expression_.symbols()[static_cast<size_t>(node.value)].name)), kOfAtom};
      case Operator::kAdd:
        return infix(node, "+", kOfSum, kOfProduct);
      case Operator::kSub:
        return infix(node, "-", kOfSum, kOfProduct);
      case Operator::kMul:
        return infix(node, "*", kOfProduct, kOfSign);
      case Operator::kDiv:
      case Operator::kFloorDiv:
        return infix(node, "//", kOfProduct, kOfSign);
      case Operator::kMod:
        return infix(node, "%", kOfProduct, kOfSign);
      case Operator::kMax:
        return call(node, "max");
      case Operator::kMin:
        return call(node, "min");
      case Operator::kAbs:
        return call(node, "abs");
      case Operator::kWord:
        return {fmt::format("{:#x}", node.value), kOfAtom};
      case Operator::kBitsFrom:
        return call(node, "bits_from");
      case Operator::kBitAnd:
        return call(node, "bit_and");
      case Operator::kBitOr:
        return call(node, "bit_or");
      case Operator::kBitNot:
        return call(node, "bit_not");
      case Operator::kEq:
        return compared(comparison(node, "=="));
      case Operator::kNe:
        return compared(comparison(node, "!="));
      case Operator::kLt:
        return compared(comparison(node, "<"));
      case Operator::kLe:
        return compared(comparison(node, "<="));
      case Operator::kGt:
        return compared(comparison(node, ">"));
      case Operator::kGe:
        return compared(comparison(node, ">="));
      case Operator::kAnd:
        return infix(node, "and", kOfAnd, kOfNot);
      case Operator::kOr:
        return infix(node, "or", kOfOr, kOfAnd);
      case Operator::kNot:
        return {fmt::format("not {}", print(node.operands[0], kOfNot)), kOfNot};
      case Operator::kSelect:
        return call(node, "where");
      case Operator::kCall:
        return function(node);
      case Operator::kRead: {
        const std::string& symbol = expression_.symbols()[static_cast<size_t>(node.value)].name;
        std::string text(name_of(symbol));
        if (node.operands[0] >= 0) text += fmt::format("[{}]", print(node.operands[0], kOfOr));
        if (is_read_at_pair(symbol)) text += "[row, col]";
        return {std::move(text), kOfAtom};
      }
    }
    return {};
  }

  static Printed compared(Printed printed) { return {std::move(printed.text), kOfComparison}; }

  bool is_read_at_pair(std::string_view symbol) const {
    const auto found = std::ranges::find(names_, symbol, &ExpressionName::symbol);
    return found != names_.end() && found->reads == Reads::kAtPair;
  }
  std::string_view name_of(std::string_view symbol) const {
    for (const ExpressionName& name : names_) {
      if (name.symbol == symbol) return name.name;
    }
    return symbol;
  }

  const Expression& expression_;
  std::span<const ExpressionName> names_;
};

}  // namespace

std::string to_text(const Expression& expression, std::span<const ExpressionName> names) {
  return Printer(expression, names).print(expression.root(), kOfOr);
}

}  // namespace hstujit
