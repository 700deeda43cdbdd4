// The float64 reference of one row, from docs/ops-rows.md.
#include "compiler/spec/operators/rms_norm/spec.h"
#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_reference.h"

namespace hstujit {

void RmsNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const NormedElements normed = norm_of(RowNorm::kRms, row.input("x"), row.scalar("eps"));
  const std::vector<double>& n = normed.n;
  const std::span<const double> weight = params_.weight ? row.input("weight") : std::span<const double>();
  const auto factor = [&](size_t i) { return weight.empty() ? 1.0 : weight[i]; };

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < n.size(); ++i) {
      const double z = n[i] * factor(i);
      out[i] = params_.silu ? z * sigmoid(z) : z;
    }
    return;
  }

  const std::span<const double> dout = row.input("dout");
  std::vector<double> dz(dout.begin(), dout.end()), g(n.size());
  for (size_t i = 0; i < n.size(); ++i) {
    if (params_.silu) dz[i] *= silu_slope(n[i] * factor(i));
    g[i] = dz[i] * factor(i);
  }
  add_norm_gradient(RowNorm::kRms, normed, g, row.output("dx"), row.terms("dx"));
  if (params_.residual) add_residual_gradient(row.input(kResidualGradient), row.output("dx"), row.terms("dx"));
  if (!params_.weight) return;
  const std::span<double> dweight = row.output("dweight");
  for (size_t i = 0; i < n.size(); ++i) dweight[i] = dz[i] * n[i];
}

const OperatorReference& reference_rms_norm() { return row_reference<RmsNormSpec>(); }

}  // namespace hstujit
