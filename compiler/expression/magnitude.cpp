#include "compiler/expression/magnitude.h"

#include <algorithm>
#include <vector>

namespace hstujit {

namespace {

constexpr int64_t kLargest = int64_t{1} << 61;

int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kLargest : std::min(result, kLargest);
}

int64_t magnitude(const Interval& of) { return std::max(std::min(of.high, kLargest), -std::max(of.low, -kLargest)); }

}  // namespace

int64_t largest_integer(const Expression& expression, std::span<const Interval> values) {
  std::vector<Interval> intervals;
  int64_t largest = 0;
  for (const Expression::Node& node : expression.nodes()) {
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? Interval{} : intervals[static_cast<size_t>(node.operands[i])];
    };
    const auto is_other = [&](int operand) {
      return operand >= 0 && (expression.node(operand).real || expression.node(operand).wide);
    };
    const bool compares_others = node.boolean && (is_other(node.operands[0]) || is_other(node.operands[1]));
    if (node.real || node.wide) {
      intervals.push_back({});
    } else if (compares_others) {
      intervals.push_back({0, 1});
    } else if (node.op == Operator::kConstant) {
      intervals.push_back({node.value, node.value});
    } else if (node.op == Operator::kSymbol) {
      intervals.push_back(values[static_cast<size_t>(node.value)]);
    } else {
      intervals.push_back(evaluate_interval(node.op, operand(0), operand(1), operand(2)));
    }
    if (!node.boolean) largest = std::max(largest, magnitude(intervals.back()));
  }
  return largest;
}

int64_t largest_magnitude(const Expression& expression, std::span<const Interval> values) {
  ExpressionEvaluator evaluator(expression);
  evaluator.over(values);
  int64_t largest = 1;
  for (size_t i = 0; i < expression.nodes().size(); ++i) {
    if (expression.nodes()[i].boolean) continue;
    largest = std::max(largest, magnitude(evaluator.interval_of(static_cast<int>(i))));
  }
  // The most that a bound is multiplied by on its way down to the node, and how many values are added to it.
  struct Way {
    int64_t factor = 1, terms = 1;
  };
  std::vector<Way> ways(expression.nodes().size());
  int64_t most = 1;
  for (size_t i = expression.nodes().size(); i-- > 0;) {
    const Expression::Node& node = expression.nodes()[i];
    const Way own = ways[i];
    most = std::max(most, product(own.factor, own.terms));
    Way below = own;
    if (node.op == Operator::kAdd || node.op == Operator::kSub) below.terms = own.terms + 1;
    if (node.op == Operator::kDiv || node.op == Operator::kFloorDiv) {
      const Interval divisor = evaluator.interval_of(node.operands[1]);
      below = {product(own.factor, std::max<int64_t>(divisor.high, 1)), own.terms};
    }
    for (const int operand : node.operands) {
      if (operand < 0) continue;
      Way& way = ways[static_cast<size_t>(operand)];
      way = {std::max(way.factor, below.factor), std::max(way.terms, below.terms)};
    }
  }
  return product(largest, most);
}

}  // namespace hstujit
