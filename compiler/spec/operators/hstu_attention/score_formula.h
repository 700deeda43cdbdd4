// Scores in float64, for the reference and what its results are held to.
#pragma once

#include "compiler/expression/formula.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// A row and a column of a sequence.
struct ScorePlace {
  int64_t row, col, n, targets, head;
};

// A score in float64.
class ScoreFormula {
 public:
  ScoreFormula(const HstuAttentionParams& params, double alpha);

  // Takes alpha times the product. Derivatives are those with respect to it.
  FormulaPoint at(double x, const ScorePlace& place, FormulaDetail detail) const;
  double value(double x, const ScorePlace& place) const { return at(x, place, FormulaDetail::kValue).value; }

  // Whether a text has bends or jumps, of which rounding may choose either side.
  bool may_jump() const { return may_jump_; }

 private:
  Formula formula_;
  double heads_, alpha_;
  bool may_jump_;
};

}  // namespace hstujit
