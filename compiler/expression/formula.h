// Values of expressions with real numbers in float64, with derivatives and with what rounding does to them.
#pragma once

#include <cstdint>
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

// The elements of operands that an expression reads.
class FormulaOperands {
 public:
  virtual ~FormulaOperands() = default;
  // `symbol`: the index of the operand's symbol; `index`: 0 where the read has none.
  virtual double real(int symbol, int64_t index) const = 0;
  virtual int64_t integer(int symbol, int64_t index) const = 0;
};

// At a bend the slope is that of the derivative which kernels have (compiler/passes/differentiator.h).
class Formula {
 public:
  // `variable`: the index of a real symbol, or of that of an operand whose reads at `index`, a node or -1, are the
  // variable.
  Formula(Expression expression, int variable, int index = -1);

  const Expression& expression() const { return expression_; }
  // Whether value or slope jumps somewhere, as those of relu, int and where.
  bool bends() const { return bends_; }
  // A value of each symbol; integers are exact. May be called by several threads at a time.
  FormulaPoint at(std::span<const double> values, FormulaDetail detail,
                  const FormulaOperands* operands = nullptr) const;
  // The integer of a node, which may not depend on real symbols.
  int64_t integer_at(int node, std::span<const double> values, const FormulaOperands* operands = nullptr) const;

 private:
  struct Points;
  void compute(std::span<const double> values, FormulaDetail detail, const FormulaOperands* operands, int last,
               Points& points) const;

  Expression expression_;
  int variable_, index_;
  bool bends_ = false;
};

}  // namespace hstujit
