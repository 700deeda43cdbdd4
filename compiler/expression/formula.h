// Values of expressions with real numbers in float64, with derivatives and with what rounding does to them.
#pragma once

#include <span>

#include "compiler/expression/expression.h"

namespace hstujit {

// How much of a point is computed; what is left out is not set.
enum class FormulaDetail : uint8_t { kValue, kSlope, kErrors };

// A number of an expression as a function of the variable.
struct FormulaPoint {
  double value, slope, curvature;
  // By how much value and slope change, to first order, where tanh and erf change by their own size; and where every
  // operation's result does.
  double value_by_tanh, slope_by_tanh;
  double value_by_rounding, slope_by_rounding;
};

// At a bend the slope is that of the derivative which kernels have (compiler/passes/differentiator.h).
class Formula {
 public:
  // `variable`: the index of a real symbol. The expression has at most kMaxExpressionParts nodes.
  Formula(Expression expression, int variable);

  const Expression& expression() const { return expression_; }
  // Whether value or slope jumps somewhere, as those of relu, int and where.
  bool bends() const { return bends_; }
  // A value of each symbol; integers are exact. May be called by several threads at a time.
  FormulaPoint at(std::span<const double> values, FormulaDetail detail) const;

 private:
  Expression expression_;
  int variable_;
  bool bends_ = false;
};

}  // namespace hstujit
