// Scores in float64, for the reference and what its results are held to.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/expression/formula.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// A row and a column of a sequence of the batch, whose first row is row `first` of tensors of all rows.
struct ScorePlace {
  int64_t row, col, n, targets, head, first = 0, sequence = 0;
};

// The same parameters with what heads with softmax normalise as their score.
inline HstuAttentionParams with_softmax_score(HstuAttentionParams params) {
  params.score = params.has_softmax_score() ? params.softmax_score : "identity";
  return params;
}

// A score in float64.
class ScoreFormula {
 public:
  // `tensors`: of the operands that the score reads, in the order in which the parameters declare them.
  ScoreFormula(const HstuAttentionParams& params, double alpha, std::vector<const HostTensor*> tensors = {});

  // Takes alpha times the product. Derivatives are those with respect to it.
  FormulaPoint at(double x, const ScorePlace& place, FormulaDetail detail) const {
    return at(formula_, x, place, detail);
  }
  double value(double x, const ScorePlace& place) const { return at(x, place, FormulaDetail::kValue).value; }

  // Reads of an operand with a gradient that have the same index.
  struct Site {
    size_t operand = 0;  // its place among the declared ones
    int index = -1;      // node of the expression
    Formula formula;     // as a function of what is read
  };
  const std::vector<Operand>& operands() const { return operands_; }
  const std::vector<Site>& sites() const { return sites_; }
  // sites_add_to_x() of score_sites.h.
  bool sites_add_to_x() const { return sites_add_to_x_; }
  // As above, with derivatives with respect to what the site reads.
  FormulaPoint at(const Site& site, double x, const ScorePlace& place, FormulaDetail detail) const {
    return at(site.formula, x, place, detail);
  }
  // The element of the operand's tensor that the site reads of this pair; -1 where that is outside of the sequence.
  int64_t element(const Site& site, const ScorePlace& place) const;

  // Whether the mask holds, which reads operands.
  bool mask_holds(const ScorePlace& place) const;

  // Whether a text has bends or jumps, of which rounding may choose either side.
  bool may_jump() const { return may_jump_; }

 private:
  // Symbols of x, row, col, n, targets, head, heads and alpha; those of operands follow.
  static constexpr int kFirstOperand = 8;
  class Tensors;
  class MaskTensors;
  FormulaPoint at(const Formula& formula, double x, const ScorePlace& place, FormulaDetail detail) const;
  std::array<double, kFirstOperand> values_at(double x, const ScorePlace& place) const;

  std::vector<Operand> operands_;
  std::vector<const HostTensor*> tensors_;
  Formula formula_;
  double q_heads_, alpha_;
  std::vector<Site> sites_;
  std::optional<Formula> mask_;  // where that reads operands
  bool may_jump_, sites_add_to_x_;
};

}  // namespace hstujit
