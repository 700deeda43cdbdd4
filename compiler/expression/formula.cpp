#include "compiler/expression/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "compiler/expression/evaluate.h"

namespace hstujit {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kExactInFp32 = 0x1p24;  // all integers up to here are

// sigmoid(x), and sigmoid(-x), which is 1 less that without its rounding. One exponential is most of what a score
// costs.
struct Sigmoid {
  explicit Sigmoid(double x) {
    const double power = std::exp(-std::abs(x)), large = 1 / (1 + power), small = power / (1 + power);
    value = x < 0 ? small : large;
    rest = x < 0 ? large : small;
  }
  // tanh(x / 2). Near 0 its error is that of numbers around 1.
  double tanh() const { return value - rest; }

  double value, rest;
};

double normal_density(double x) { return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double square(double x) { return x * x; }

// A function of one number: its value, its first two derivatives, and by how much the first two of these change where
// the tanh or erf that a kernel computes them with changes by its own size, and where roundings do beside the size of
// the result.
struct Unary {
  double value = 0, slope = 0, curvature = 0;
  double value_by_tanh = 0, slope_by_tanh = 0;
  double rounding = 0;
  bool exact = false;  // rounds nothing
};

// silu is h + h t with h = x / 2 and t = tanh(h), and its derivative (1 + t + h (1 - t^2)) / 2.
void add_silu(double x, FormulaDetail detail, Unary& y) {
  const Sigmoid s(x);
  y.value = x * s.value;
  if (detail == FormulaDetail::kValue) return;
  y.slope = s.value * (1 + x * s.rest);
  if (detail == FormulaDetail::kSlope) return;
  const double t = s.tanh();
  y.curvature = s.value * s.rest * (2 - x * t);
  y.value_by_tanh = x / 2 * t;
  y.slope_by_tanh = (0.5 - x / 2 * t) * t;
}

// sigmoid is (1 + t) / 2 with t = tanh(x / 2), and its derivative (1 - t^2) / 4.
void add_sigmoid(double x, FormulaDetail detail, Unary& y) {
  const Sigmoid s(x);
  y.value = s.value;
  if (detail == FormulaDetail::kValue) return;
  y.slope = s.value * s.rest;
  if (detail == FormulaDetail::kSlope) return;
  const double t = s.tanh();
  y.curvature = -y.slope * t;
  y.value_by_tanh = t / 2;
  y.slope_by_tanh = t * t / 2;
}

void add_tanh(double x, FormulaDetail detail, Unary& y) {
  const double t = std::tanh(x);
  y.value = t;
  y.slope = 1 - t * t;
  y.curvature = -2 * t * y.slope;
  if (detail != FormulaDetail::kErrors) return;
  y.value_by_tanh = t;
  y.slope_by_tanh = 2 * t * t;
}

// gelu is h + h e with h = x / 2 and e = erf(x / sqrt(2)), and its derivative (1 + e) / 2 + x times the density.
void add_gelu(double x, FormulaDetail detail, Unary& y) {
  y.value = x * normal_below(x);
  if (detail == FormulaDetail::kValue) return;
  const double density = normal_density(x);
  y.slope = normal_below(x) + x * density;
  if (detail == FormulaDetail::kSlope) return;
  const double e = std::erf(x / std::numbers::sqrt2);
  y.curvature = density * (2 - x * x);
  y.value_by_tanh = x / 2 * e;
  y.slope_by_tanh = std::abs(e) / 2 + std::abs(x * density);
}

void add_power(double x, double exponent, Unary& y) {
  const auto times = [&](double factor, double power) { return factor == 0 ? 0 : factor * std::pow(x, power); };
  y.value = std::pow(x, exponent);
  y.slope = times(exponent, exponent - 1);
  y.curvature = times(exponent * (exponent - 1), exponent - 2);
}

// `constant` is the second operand of pow and leaky_relu.
Unary unary(Function function, double x, double constant, FormulaDetail detail) {
  Unary y;
  switch (function) {
    case Function::kReal:
      return {x, 1, 0, 0, 0, 0, std::abs(x) <= kExactInFp32};
    case Function::kNegate:
      return {-x, -1, 0, 0, 0, 0, true};
    case Function::kFloor:
      return {std::floor(x), 0, 0, 0, 0, 0, true};
    case Function::kInt: {
      constexpr auto kMost = static_cast<double>(kLargestInt);
      return {std::isnan(x) ? -kMost : std::trunc(std::clamp(x, -kMost, kMost)), 0, 0, 0, 0, 0, true};
    }
    case Function::kExp:
      y.value = y.slope = y.curvature = std::exp(x);
      y.rounding = std::abs(x) * y.value;  // exp2 of a product
      return y;
    case Function::kLog:
      return {std::log(x), 1 / x, -1 / square(x), 0, 0, 1};
    case Function::kLog2:
      return {std::log2(x), 1 / (x * std::numbers::ln2), -1 / (square(x) * std::numbers::ln2), 0, 0, 1};
    case Function::kSqrt: {
      const double root = std::sqrt(x);
      return {root, 0.5 / root, -0.25 / (x * root)};
    }
    case Function::kSin:
      return {std::sin(x), std::cos(x), -std::sin(x), 0, 0, 1};
    case Function::kCos:
      return {std::cos(x), -std::sin(x), -std::cos(x), 0, 0, 1};
    case Function::kRelu:
      return {x <= 0 ? 0.0 : x, x <= 0 ? 0.0 : 1.0, 0, 0, 0, 0, true};
    case Function::kLeakyRelu:
      return {x > 0 ? x : constant * x, x > 0 ? 1.0 : constant};
    case Function::kHardswish: {
      const bool inside = x > -3 && x < 3;
      const double gate = std::isnan(x) ? x : std::clamp(x + 3, 0.0, 6.0) / 6;
      return {x * gate, gate + (inside ? x / 6 : 0), inside ? 1.0 / 3 : 0};
    }
    case Function::kPow:
      add_power(x, constant, y);
      return y;
    case Function::kTanh:
      add_tanh(x, detail, y);
      return y;
    case Function::kSigmoid:
      add_sigmoid(x, detail, y);
      return y;
    case Function::kSilu:
      add_silu(x, detail, y);
      return y;
    case Function::kGelu:
      add_gelu(x, detail, y);
      return y;
    case Function::kDivide:
    case Function::kNone:
      break;
  }
  return y;
}

// One number of an expression, from those that it is made of. Every rule adds what its own rounding is to what the
// roundings of its operands become.
class Rules {
 public:
  explicit Rules(FormulaDetail detail) : errors_(detail == FormulaDetail::kErrors), detail_(detail) {}

  static FormulaPoint exact(double value, double slope = 0) { return {value, slope, 0, 0, 0, 0, 0}; }

  FormulaPoint sum(const FormulaPoint& a, const FormulaPoint& b, double sign) const {
    FormulaPoint y = exact(a.value + sign * b.value, a.slope + sign * b.slope);
    if (!errors_) return y;
    y.curvature = a.curvature + sign * b.curvature;
    y.value_by_tanh = std::abs(a.value_by_tanh) + std::abs(b.value_by_tanh);
    y.slope_by_tanh = std::abs(a.slope_by_tanh) + std::abs(b.slope_by_tanh);
    y.value_by_rounding = a.value_by_rounding + b.value_by_rounding + std::abs(y.value);
    y.slope_by_rounding = a.slope_by_rounding + b.slope_by_rounding + std::abs(y.slope);
    return y;
  }

  FormulaPoint product(const FormulaPoint& a, const FormulaPoint& b) const {
    FormulaPoint y = exact(a.value * b.value, a.slope * b.value + a.value * b.slope);
    if (!errors_) return y;
    y.curvature = a.curvature * b.value + 2 * a.slope * b.slope + a.value * b.curvature;
    const auto of_value = [&](double da, double db) { return std::abs(b.value * da) + std::abs(a.value * db); };
    const auto of_slope = [&](double da, double db, double sa, double sb) {
      return std::abs(b.value * sa) + std::abs(a.slope * db) + std::abs(b.slope * da) + std::abs(a.value * sb);
    };
    y.value_by_tanh = of_value(a.value_by_tanh, b.value_by_tanh);
    y.slope_by_tanh = of_slope(a.value_by_tanh, b.value_by_tanh, a.slope_by_tanh, b.slope_by_tanh);
    y.value_by_rounding = of_value(a.value_by_rounding, b.value_by_rounding) + std::abs(y.value);
    y.slope_by_rounding = of_slope(a.value_by_rounding, b.value_by_rounding, a.slope_by_rounding, b.slope_by_rounding) +
                          std::abs(a.slope * b.value) + std::abs(a.value * b.slope);
    return y;
  }

  FormulaPoint apply(Function function, const FormulaPoint& a, double constant) const {
    return apply(unary(function, a.value, constant, detail_), a);
  }

  FormulaPoint quotient(const FormulaPoint& a, const FormulaPoint& b) const {
    const double x = b.value;
    FormulaPoint y = product(a, apply({1 / x, -1 / (x * x), 2 / (x * x * x)}, b));
    y.value = a.value / x;
    return y;
  }

  // Where the exponent depends on the variable, too: exp(b log(a)).
  FormulaPoint power(const FormulaPoint& a, const FormulaPoint& b) const {
    if (b.slope == 0 && (!errors_ || b.curvature == 0)) return apply(Function::kPow, a, b.value);
    return apply(Function::kExp, product(b, apply(Function::kLog, a, 0)), 0);
  }

  // An operand that is chosen, as is.
  static FormulaPoint extreme(const FormulaPoint& a, const FormulaPoint& b, bool second) {
    if (std::isnan(a.value) || std::isnan(b.value)) return exact(kNan, second ? b.slope : a.slope);
    return second ? b : a;
  }

 private:
  // A slope that is 0 makes nothing of what is not a number or endless.
  static double times(double slope, double by) { return by == 0 ? 0 : slope * by; }

  FormulaPoint apply(const Unary& f, const FormulaPoint& a) const {
    FormulaPoint y = exact(f.value, times(f.slope, a.slope));
    if (!errors_) return y;
    const double bend = std::abs(times(f.curvature, a.slope));
    y.curvature = times(f.curvature, square(a.slope)) + times(f.slope, a.curvature);
    y.value_by_tanh = std::abs(times(f.slope, a.value_by_tanh)) + std::abs(f.value_by_tanh);
    y.slope_by_tanh = std::abs(times(f.slope, a.slope_by_tanh)) + times(bend, std::abs(a.value_by_tanh)) +
                      std::abs(f.slope_by_tanh * a.slope);
    y.value_by_rounding =
        std::abs(times(f.slope, a.value_by_rounding)) + f.rounding + (f.exact ? 0 : std::abs(f.value));
    y.slope_by_rounding = std::abs(times(f.slope, a.slope_by_rounding)) + times(bend, a.value_by_rounding) +
                          (f.exact ? 0 : std::abs(y.slope));
    return y;
  }

  bool errors_;
  FormulaDetail detail_;
};

int64_t as_integer(double value) { return static_cast<int64_t>(value); }

double compared(Operator op, double a, double b) {
  switch (op) {
    case Operator::kEq:
      return a == b ? 1 : 0;
    case Operator::kLt:
      return a < b ? 1 : 0;
    case Operator::kLe:
      return a <= b ? 1 : 0;
    case Operator::kGt:
      return a > b ? 1 : 0;
    default:
      return a >= b ? 1 : 0;
  }
}

FormulaPoint call(const Expression::Node& node, const FormulaPoint& a, const FormulaPoint& b, const Rules& rules) {
  if (node.function == Function::kDivide) return rules.quotient(a, b);
  if (node.function == Function::kPow) return rules.power(a, b);
  return rules.apply(node.function, a, b.value);
}

FormulaPoint of_reals(const Expression::Node& node, const FormulaPoint& a, const FormulaPoint& b, const FormulaPoint& c,
                      const Rules& rules) {
  switch (node.op) {
    case Operator::kAdd:
      return rules.sum(a, b, 1);
    case Operator::kSub:
      return rules.sum(a, b, -1);
    case Operator::kMul:
      return rules.product(a, b);
    case Operator::kMax:
      return Rules::extreme(a, b, a.value <= b.value);
    case Operator::kMin:
      return Rules::extreme(a, b, a.value >= b.value);
    case Operator::kAbs:
      return a.value > 0 ? a : rules.apply(Function::kNegate, a, 0);
    case Operator::kSelect:
      return a.value != 0 ? b : c;
    case Operator::kCall:
      return call(node, a, b, rules);
    default:
      return Rules::exact(compared(node.op, a.value, b.value));
  }
}

bool bends_at(const Expression& expression, const Expression::Node& node) {
  if (node.op == Operator::kCall) {
    return node.function == Function::kInt || node.function == Function::kFloor || node.function == Function::kRelu ||
           node.function == Function::kLeakyRelu || node.function == Function::kHardswish;
  }
  const bool compares = node.boolean && node.operands[0] >= 0 && expression.node(node.operands[0]).real;
  return compares ||
         (node.real && (node.op == Operator::kMax || node.op == Operator::kMin || node.op == Operator::kAbs));
}

}  // namespace

Formula::Formula(Expression expression, int variable, int index)
    : expression_(std::move(expression)), variable_(variable), index_(index) {
  for (const Expression::Node& node : expression_.nodes()) bends_ = bends_ || bends_at(expression_, node);
}

// Integers are kept beside, since a double has no room for some of 64 bits. Each thread keeps its own for all formulas:
// a reference asks for one number after the other, and operands ask for none.
struct Formula::Points {
  std::vector<FormulaPoint> real;
  std::vector<int64_t> whole;

  static Points& of_thread(size_t nodes) {
    thread_local Points points;
    if (points.real.size() < nodes) {
      points.real.resize(nodes);
      points.whole.resize(nodes);
    }
    return points;
  }
};

void Formula::compute(std::span<const double> values, FormulaDetail detail, const FormulaOperands* operands, int last,
                      Points& points) const {
  const Rules rules(detail);
  for (int place = 0; place <= last; ++place) {
    const Expression::Node& node = expression_.node(place);
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? Rules::exact(0) : points.real[static_cast<size_t>(node.operands[i])];
    };
    const auto integer = [&](size_t i) -> int64_t {
      return node.operands[i] < 0 ? 0 : points.whole[static_cast<size_t>(node.operands[i])];
    };
    FormulaPoint& point = points.real[static_cast<size_t>(place)];
    int64_t& whole = points.whole[static_cast<size_t>(place)];
    const auto set_integer = [&](int64_t value) {
      whole = value;
      point = Rules::exact(static_cast<double>(value));
    };
    if (node.op == Operator::kConstant) {
      if (node.real) point = Rules::exact(node.number);
      if (!node.real) set_integer(node.value);
    } else if (node.op == Operator::kSymbol) {
      const double value = values[static_cast<size_t>(node.value)];
      if (!node.real) set_integer(as_integer(value));
      point = Rules::exact(value, node.value == variable_ ? 1 : 0);
    } else if (node.op == Operator::kRead) {
      const auto symbol = static_cast<int>(node.value);
      const bool varies = symbol == variable_ && node.operands[0] == index_;
      if (node.real) point = Rules::exact(operands->real(symbol, integer(0)), varies ? 1 : 0);
      if (!node.real) set_integer(operands->integer(symbol, integer(0)));
    } else if (node.real || node.op == Operator::kCall ||
               (node.operands[0] >= 0 && expression_.node(node.operands[0]).real)) {
      point = of_reals(node, operand(0), operand(1), operand(2), rules);
      if (!node.real) whole = as_integer(point.value);
    } else {
      set_integer(evaluate_point(node.op, integer(0), integer(1), integer(2)));
    }
  }
}

FormulaPoint Formula::at(std::span<const double> values, FormulaDetail detail, const FormulaOperands* operands) const {
  Points& points = Points::of_thread(expression_.nodes().size());
  compute(values, detail, operands, expression_.root(), points);
  return points.real[static_cast<size_t>(expression_.root())];
}

int64_t Formula::integer_at(int node, std::span<const double> values, const FormulaOperands* operands) const {
  Points& points = Points::of_thread(expression_.nodes().size());
  compute(values, FormulaDetail::kValue, operands, node, points);
  return points.whole[static_cast<size_t>(node)];
}

}  // namespace hstujit
