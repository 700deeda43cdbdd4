#include "compiler/spec/operators/hstu_attention/score_formula.h"

#include <algorithm>
#include <utility>

#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_sites.h"

namespace hstujit {

namespace {

// The element of the tensor that a read at `index` has; -1 where a row is outside of the sequence.
int64_t element_of(const Operand& operand, const HostTensor& tensor, const ScorePlace& place, int64_t index,
                   int64_t q_heads) {
  if (operand.kind == &scalar_kind()) return 0;
  if (operand.kind == &head_kind()) return place.head;
  if (operand.kind == &sequence_kind()) return place.sequence;
  const int64_t heads = std::max<int64_t>(operand.heads, 1);
  const int64_t head = operand.heads > 0 ? place.head / (q_heads / operand.heads) : 0;
  if (operand.kind == &pair_kind()) {
    const int64_t size = tensor.shape.back();
    const auto inside = [&](int64_t position) { return position >= 0 && position < std::min(place.n, size); };
    const int64_t row = ((place.sequence * heads + head) * size + place.row) * size;
    return inside(place.row) && inside(place.col) ? row + place.col : -1;
  }
  if (operand.kind == &table_kind()) return std::clamp<int64_t>(index, 0, operand.entries - 1) * heads + head;
  return index < 0 || index >= place.n ? -1 : (place.first + index) * heads + head;
}

}  // namespace

class ScoreFormula::Tensors final : public FormulaOperands {
 public:
  Tensors(const ScoreFormula& score, const ScorePlace& place) : score_(score), place_(place) {}

  double real(int symbol, int64_t index) const override {
    const int64_t element = this->element(symbol, index);
    return element < 0 ? 0 : tensor(symbol).reals[static_cast<size_t>(element)];
  }
  int64_t integer(int symbol, int64_t index) const override {
    const int64_t element = this->element(symbol, index);
    return element < 0 ? 0 : tensor(symbol).integers[static_cast<size_t>(element)];
  }
  int64_t element(int symbol, int64_t index) const {
    const Operand& operand = score_.operands_[static_cast<size_t>(symbol - kFirstOperand)];
    return element_of(operand, tensor(symbol), place_, index, static_cast<int64_t>(score_.q_heads_));
  }

 private:
  const HostTensor& tensor(int symbol) const { return *score_.tensors_[static_cast<size_t>(symbol - kFirstOperand)]; }

  const ScoreFormula& score_;
  const ScorePlace& place_;
};

// Values of the symbols of the mask.
class ScoreFormula::MaskTensors final : public FormulaOperands {
 public:
  MaskTensors(const ScoreFormula& score, const ScorePlace& place) : score_(score), place_(place) {}

  double real(int, int64_t) const override { return 0; }
  int64_t integer(int symbol, int64_t index) const override {
    const std::string& name = score_.mask_->expression().symbols()[static_cast<size_t>(symbol)].name;
    const auto found = std::ranges::find(score_.operands_, name, &Operand::name);
    const HostTensor& tensor = *score_.tensors_[static_cast<size_t>(found - score_.operands_.begin())];
    const int64_t element = element_of(*found, tensor, place_, index, static_cast<int64_t>(score_.q_heads_));
    return element < 0 ? 0 : tensor.integers[static_cast<size_t>(element)];
  }

 private:
  const ScoreFormula& score_;
  const ScorePlace& place_;
};

bool ScoreFormula::mask_holds(const ScorePlace& place) const {
  const MaskTensors tensors(*this, place);
  const std::array<double, 4> of_mask = {static_cast<double>(place.row), static_cast<double>(place.col),
                                         static_cast<double>(place.n), static_cast<double>(place.targets)};
  std::vector<double> values(of_mask.begin(), of_mask.end());
  values.resize(mask_->expression().symbols().size());
  return mask_->integer_at(mask_->expression().root(), values, &tensors) != 0;
}

ScoreFormula::ScoreFormula(const HstuAttentionParams& params, double alpha, std::vector<const HostTensor*> tensors)
    : operands_(own_operands(params.operands, params.heads)),
      tensors_(std::move(tensors)),
      formula_(parse_score(params.score, operands_).value(), 0),
      q_heads_(static_cast<double>(params.heads)),
      alpha_(alpha),
      may_jump_(!is_named_score(params.score) && formula_.bends()),
      sites_add_to_x_(hstujit::sites_add_to_x(formula_.expression(), operands_)) {
  if (const auto mask = reading_mask_of(params)) mask_.emplace(mask->exact, 0);
  const Expression& score = formula_.expression();
  for (const Expression::Node& node : score.nodes()) {
    if (node.op != Operator::kRead) continue;
    const auto operand = static_cast<size_t>(node.value - kFirstOperand);
    const bool known = std::ranges::any_of(
        sites_, [&](const Site& site) { return site.operand == operand && site.index == node.operands[0]; });
    if (known || !operands_[operand].gradient) continue;
    sites_.push_back({operand, node.operands[0], Formula(score, static_cast<int>(node.value), node.operands[0])});
  }
}

std::array<double, ScoreFormula::kFirstOperand> ScoreFormula::values_at(double x, const ScorePlace& place) const {
  return {x,
          static_cast<double>(place.row),
          static_cast<double>(place.col),
          static_cast<double>(place.n),
          static_cast<double>(place.targets),
          static_cast<double>(place.head),
          q_heads_,
          alpha_};
}

FormulaPoint ScoreFormula::at(const Formula& formula, double x, const ScorePlace& place, FormulaDetail detail) const {
  const std::array<double, kFirstOperand> values = values_at(x, place);
  const Tensors tensors(*this, place);
  return formula.at(values, detail, &tensors);
}

int64_t ScoreFormula::element(const Site& site, const ScorePlace& place) const {
  const Tensors tensors(*this, place);
  const int64_t index = site.index < 0 ? 0 : formula_.integer_at(site.index, values_at(0, place), &tensors);
  return tensors.element(static_cast<int>(site.operand) + kFirstOperand, index);
}

}  // namespace hstujit
