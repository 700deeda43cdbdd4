// The float64 reference of one row, from docs/ops-rows.md.
#include "compiler/spec/operators/layer_norm/spec.h"
#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_reference.h"

namespace hstujit {

void LayerNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const NormedElements normed = norm_of(RowNorm::kLayer, row.input("x"), row.scalar("eps"));
  const std::vector<double>& n = normed.n;
  const std::span<const double> weight = params_.weight ? row.input("weight") : std::span<const double>();
  const auto factor = [&](size_t i) { return weight.empty() ? 1.0 : weight[i]; };

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    const std::span<const double> bias = params_.bias ? row.input("bias") : std::span<const double>();
    for (size_t i = 0; i < n.size(); ++i) {
      out[i] = n[i] * factor(i);
      if (params_.bias) out[i] += bias[i];
    }
    return;
  }

  const std::span<const double> dout = row.input("dout");
  std::vector<double> g(n.size());
  for (size_t i = 0; i < n.size(); ++i) g[i] = dout[i] * factor(i);
  add_norm_gradient(RowNorm::kLayer, normed, g, row.output("dx"), row.terms("dx"));
  if (params_.residual) add_residual_gradient(row.input(kResidualGradient), row.output("dx"), row.terms("dx"));
  if (params_.weight) {
    const std::span<double> dweight = row.output("dweight");
    for (size_t i = 0; i < n.size(); ++i) dweight[i] = dout[i] * n[i];
  }
  if (params_.bias) {
    const std::span<double> dbias = row.output("dbias");
    for (size_t i = 0; i < n.size(); ++i) dbias[i] = dout[i];
  }
}

const OperatorReference& reference_layer_norm() { return row_reference<LayerNormSpec>(); }

}  // namespace hstujit
