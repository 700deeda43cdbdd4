#include "compiler/spec/operators/hstu_attention/score_formula.h"

#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {

ScoreFormula::ScoreFormula(const HstuAttentionParams& params, double alpha)
    : formula_(parse_score(params.score).value(), 0),
      heads_(static_cast<double>(params.heads)),
      alpha_(alpha),
      may_jump_(!is_named_score(params.score) && formula_.bends()) {}

FormulaPoint ScoreFormula::at(double x, const ScorePlace& place, FormulaDetail detail) const {
  const double values[] = {x,
                           static_cast<double>(place.row),
                           static_cast<double>(place.col),
                           static_cast<double>(place.n),
                           static_cast<double>(place.targets),
                           static_cast<double>(place.head),
                           heads_,
                           alpha_};
  return formula_.at(values, detail);
}

}  // namespace hstujit
