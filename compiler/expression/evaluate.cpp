#include "compiler/expression/evaluate.h"

#include <algorithm>
#include <limits>

namespace hstujit {

namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

int64_t wrapped(Operator op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const uint64_t value = op == Operator::kAdd ? x + y : op == Operator::kSub ? x - y : x * y;
  return static_cast<int64_t>(value);
}

int64_t saturated(Operator op, int64_t a, int64_t b) {
  int64_t value = 0;
  if (op == Operator::kAdd) {
    if (!__builtin_add_overflow(a, b, &value)) return value;
    return a < 0 ? kLowest : kHighest;
  }
  if (op == Operator::kSub) {
    if (!__builtin_sub_overflow(a, b, &value)) return value;
    return a < 0 ? kLowest : kHighest;
  }
  if (!__builtin_mul_overflow(a, b, &value)) return value;
  return (a < 0) != (b < 0) ? kLowest : kHighest;
}

int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapped(Operator::kSub, 0, a) : a / b;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t towards_zero = quotient(a, b);
  const bool rounded_up = b != 0 && (a < 0) != (b < 0) && towards_zero * b != a;
  return towards_zero - (rounded_up ? 1 : 0);
}

int64_t remainder(int64_t a, int64_t b) {
  return wrapped(Operator::kSub, a, wrapped(Operator::kMul, floor_quotient(a, b), b));
}

int64_t magnitude(int64_t a) { return a < 0 ? wrapped(Operator::kSub, 0, a) : a; }

Interval hull(const Interval& a, const Interval& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Interval truth(bool always, bool sometimes) { return {always ? 1 : 0, sometimes ? 1 : 0}; }

// Of a at most b, or less.
Interval ordered(const Interval& a, const Interval& b, bool equal) {
  return equal ? truth(a.high <= b.low, a.low <= b.high) : truth(a.high < b.low, a.low < b.high);
}

Interval product(const Interval& a, const Interval& b) {
  const int64_t corners[] = {saturated(Operator::kMul, a.low, b.low), saturated(Operator::kMul, a.low, b.high),
                             saturated(Operator::kMul, a.high, b.low), saturated(Operator::kMul, a.high, b.high)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

Interval quotients(const Interval& a, const Interval& b) {
  if (b.low <= 0 && b.high >= 0) {  // by 0 it is 0, and never larger than the numerator
    if (b.is_point()) return {0, 0};
    const int64_t max = std::max(saturated(Operator::kSub, 0, a.low), a.high);
    const int64_t least = std::min(saturated(Operator::kSub, 0, a.high), a.low);
    return {std::min<int64_t>(least, 0), std::max<int64_t>(max, 0)};
  }
  const int64_t corners[] = {quotient(a.low, b.low), quotient(a.low, b.high), quotient(a.high, b.low),
                             quotient(a.high, b.high)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

// Divisors are above 0: see Operator.
Interval floor_quotients(const Interval& a, const Interval& b) {
  return {std::min(floor_quotient(a.low, b.low), floor_quotient(a.low, b.high)),
          std::max(floor_quotient(a.high, b.low), floor_quotient(a.high, b.high))};
}

Interval remainders(const Interval& a, const Interval& b) {
  const bool of_one_quotient = b.is_point() && floor_quotient(a.low, b.low) == floor_quotient(a.high, b.low);
  if (of_one_quotient) return {remainder(a.low, b.low), remainder(a.high, b.low)};
  return {0, std::max<int64_t>(b.high - 1, 0)};
}

}  // namespace

int64_t evaluate_point(Operator op, int64_t a, int64_t b, int64_t c) {
  switch (op) {
    case Operator::kConstant:
    case Operator::kSymbol:
      return a;
    case Operator::kAdd:
    case Operator::kSub:
    case Operator::kMul:
      return wrapped(op, a, b);
    case Operator::kDiv:
      return quotient(a, b);
    case Operator::kFloorDiv:
      return floor_quotient(a, b);
    case Operator::kMod:
      return remainder(a, b);
    case Operator::kMax:
      return std::max(a, b);
    case Operator::kMin:
      return std::min(a, b);
    case Operator::kAbs:
      return magnitude(a);
    case Operator::kEq:
      return a == b;
    case Operator::kLt:
      return a < b;
    case Operator::kLe:
      return a <= b;
    case Operator::kGt:
      return a > b;
    case Operator::kGe:
      return a >= b;
    case Operator::kAnd:
      return a & b;
    case Operator::kOr:
      return a | b;
    case Operator::kNot:
      return 1 - a;
    case Operator::kSelect:
      return a != 0 ? b : c;
  }
  return 0;
}

Interval evaluate_interval(Operator op, const Interval& a, const Interval& b, const Interval& c) {
  switch (op) {
    case Operator::kConstant:
    case Operator::kSymbol:
      return a;
    case Operator::kAdd:
      return {saturated(op, a.low, b.low), saturated(op, a.high, b.high)};
    case Operator::kSub:
      return {saturated(op, a.low, b.high), saturated(op, a.high, b.low)};
    case Operator::kMul:
      return product(a, b);
    case Operator::kDiv:
      return quotients(a, b);
    case Operator::kFloorDiv:
      return floor_quotients(a, b);
    case Operator::kMod:
      return remainders(a, b);
    case Operator::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Operator::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Operator::kAbs: {
      const int64_t low = saturated(Operator::kSub, 0, a.low), high = saturated(Operator::kSub, 0, a.high);
      if (a.low >= 0) return a;
      return a.high <= 0 ? Interval{high, low} : Interval{0, std::max(low, a.high)};
    }
    case Operator::kEq:
      return truth(a.is_point() && a == b, a.low <= b.high && b.low <= a.high);
    case Operator::kLt:
    case Operator::kLe:
      return ordered(a, b, op == Operator::kLe);
    case Operator::kGt:
    case Operator::kGe:
      return ordered(b, a, op == Operator::kGe);
    case Operator::kAnd:
      return {a.low & b.low, a.high & b.high};
    case Operator::kOr:
      return {a.low | b.low, a.high | b.high};
    case Operator::kNot:
      return {1 - a.high, 1 - a.low};
    case Operator::kSelect:
      if (a.low == 1) return b;
      return a.high == 0 ? c : hull(b, c);
  }
  return {};
}

ExpressionEvaluator::ExpressionEvaluator(const Expression& expression)
    : expression_(expression), points_(expression.nodes().size()), intervals_(expression.nodes().size()) {}

int64_t ExpressionEvaluator::at(std::span<const int64_t> values) {
  size_t place = 0;
  for (const Expression::Node& node : expression_.nodes()) {
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? 0 : points_[static_cast<size_t>(node.operands[i])];
    };
    points_[place++] = node.op == Operator::kConstant ? node.value
                       : node.op == Operator::kSymbol ? values[static_cast<size_t>(node.value)]
                                                      : evaluate_point(node.op, operand(0), operand(1), operand(2));
  }
  return points_[static_cast<size_t>(expression_.root())];
}

Interval ExpressionEvaluator::over(std::span<const Interval> values) {
  size_t place = 0;
  for (const Expression::Node& node : expression_.nodes()) {
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? Interval{} : intervals_[static_cast<size_t>(node.operands[i])];
    };
    intervals_[place++] = node.op == Operator::kConstant ? Interval{node.value, node.value}
                          : node.op == Operator::kSymbol
                              ? values[static_cast<size_t>(node.value)]
                              : evaluate_interval(node.op, operand(0), operand(1), operand(2));
  }
  return intervals_[static_cast<size_t>(expression_.root())];
}

}  // namespace hstujit
