#include "compiler/expression/evaluate.h"

#include <algorithm>
#include <limits>

#include "compiler/expression/interval_rules.h"

namespace hstujit {

namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
constexpr int64_t kAllBits = 0xffffffff, kWordBits = 32;

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

// Integers that saturate; a truth is 0 or 1.
struct Numbers {
  using Value = int64_t;
  using Range = Ends<int64_t>;
  using Optional = std::optional<Range>;

  static Value integer(int64_t value) { return value; }
  static std::optional<int64_t> constant(Value value) { return value; }
  static Value add(Value a, Value b) { return saturated(Operator::kAdd, a, b); }
  static Value sub(Value a, Value b) { return saturated(Operator::kSub, a, b); }
  static Value mul(Value a, Value b) { return saturated(Operator::kMul, a, b); }
  static Value div(Value a, Value b) { return quotient(a, b); }
  static Value floor_div(Value a, Value b) { return floor_quotient(a, b); }
  static Value max(Value a, Value b) { return std::max(a, b); }
  static Value min(Value a, Value b) { return std::min(a, b); }
  static Value lt(Value a, Value b) { return a < b ? 1 : 0; }
  static Value le(Value a, Value b) { return a <= b ? 1 : 0; }
  static Value gt(Value a, Value b) { return a > b ? 1 : 0; }
  static Value ge(Value a, Value b) { return a >= b ? 1 : 0; }
  static Value both(Value a, Value b) { return a & b; }
  static Value either(Value a, Value b) { return a | b; }
  static Value negate(Value a) { return 1 - a; }
  static Value select(Value condition, Value a, Value b) { return condition != 0 ? a : b; }
  static Optional products(const Range& a, const Range& b) { return ends(product({a.low, a.high}, {b.low, b.high})); }
  static Optional quotients(const Range& a, const Range& b) {
    return ends(hstujit::quotients({a.low, a.high}, {b.low, b.high}));
  }
  static Optional floor_quotients(const Range& a, const Range& b) {
    return ends(hstujit::floor_quotients({a.low, a.high}, {b.low, b.high}));
  }
  static Optional remainders(const Range& a, const Range& b) {
    return ends(hstujit::remainders({a.low, a.high}, {b.low, b.high}));
  }
  static Range ends(const Interval& interval) { return {interval.low, interval.high}; }
};

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
    case Operator::kWord:
      return a;
    case Operator::kBitsFrom:
      return a >= kWordBits ? 0 : kAllBits << std::max<int64_t>(a, 0) & kAllBits;
    case Operator::kBitAnd:
      return a & b;
    case Operator::kBitOr:
      return a | b;
    case Operator::kBitNot:
      return a ^ kAllBits;
    case Operator::kEq:
      return a == b;
    case Operator::kNe:
      return a != b;
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
    case Operator::kCall:  // formula.h has these
    case Operator::kRead:
      break;
  }
  return 0;
}

Interval evaluate_interval(Operator op, const Interval& a, const Interval& b, const Interval& c) {
  if (op == Operator::kCall) return {-kLargestInt, kLargestInt};  // an integer of a real number
  Numbers numbers;
  const auto found =
      IntervalRules<Numbers>(numbers).apply(op, {a.low, a.high}, {b.low, b.high}, {c.low, c.high}, false);
  return found ? Interval{found->low, found->high} : Interval{0, kAllBits};  // of words
}

ExpressionEvaluator::ExpressionEvaluator(const Expression& expression)
    : expression_(expression), points_(expression.nodes().size()), intervals_(expression.nodes().size()) {}

int64_t ExpressionEvaluator::at(std::span<const int64_t> values) {
  size_t place = 0;
  for (const Expression::Node& node : expression_.nodes()) {
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? 0 : points_[static_cast<size_t>(node.operands[i])];
    };
    points_[place++] = node.is_constant()             ? node.value
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
    intervals_[place++] = node.is_constant() ? Interval{node.value, node.value}
                          : node.op == Operator::kSymbol
                              ? values[static_cast<size_t>(node.value)]
                              : evaluate_interval(node.op, operand(0), operand(1), operand(2));
  }
  return intervals_[static_cast<size_t>(expression_.root())];
}

}  // namespace hstujit
