// Values of expressions at points and over intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/expression/expression.h"

namespace hstujit {

// [low, high]. Of a boolean: {1, 1} always, {0, 0} never, {0, 1} sometimes.
struct Interval {
  int64_t low = 0;
  int64_t high = 0;

  bool operator==(const Interval&) const = default;
  bool is_point() const { return low == high; }
};

// Evaluates for one thread, and keeps the memory for values. The expression must outlive it. `values` has one of each
// symbol.
class ExpressionEvaluator {
 public:
  explicit ExpressionEvaluator(const Expression& expression);

  int64_t at(std::span<const int64_t> values);
  // Contains the value at every point of the intervals.
  Interval over(std::span<const Interval> values);
  // Bounds of any node, after over().
  const Interval& interval_of(int node) const { return intervals_[static_cast<size_t>(node)]; }

 private:
  const Expression& expression_;
  std::vector<int64_t> points_;
  std::vector<Interval> intervals_;
};

// The rules of nodes with two operands, for other evaluations.
int64_t evaluate_point(Operator op, int64_t a, int64_t b, int64_t c);
Interval evaluate_interval(Operator op, const Interval& a, const Interval& b, const Interval& c);

}  // namespace hstujit
