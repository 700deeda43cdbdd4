// The float64 reference of one row, from docs/ops-rows.md.
#include <algorithm>
#include <cmath>

#include "compiler/spec/operators/swish_layer_norm/spec.h"
#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_reference.h"

namespace hstujit {

void SwishLayerNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const std::span<const double> x = row.input("x");
  const NormedElements normed = norm_of(RowNorm::kLayer, x, row.scalar("eps"));
  const std::vector<double> ones(x.size(), 1), zeros(x.size());
  const std::span<const double> weight = params_.weight ? row.input("weight") : std::span<const double>(ones);
  const std::span<const double> bias = params_.bias ? row.input("bias") : std::span<const double>(zeros);
  std::vector<double> z(x.size());
  for (size_t i = 0; i < x.size(); ++i) z[i] = normed.n[i] * weight[i] + bias[i];

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * sigmoid(z[i]);
    return;
  }

  const std::span<const double> dout = row.input("dout");
  const std::span<double> dx = row.output("dx"), terms = row.terms("dx");
  std::vector<double> dz(x.size()), g(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    dz[i] = dout[i] * x[i] * sigmoid_slope(z[i]);
    g[i] = dz[i] * weight[i];
    dx[i] = dout[i] * sigmoid(z[i]);
    terms[i] = std::abs(dx[i]);
  }
  add_norm_gradient(RowNorm::kLayer, normed, g, dx, terms);
  if (params_.weight) {
    const std::span<double> dweight = row.output("dweight");
    for (size_t i = 0; i < x.size(); ++i) dweight[i] = dz[i] * normed.n[i];
  }
  if (params_.bias) std::copy(dz.begin(), dz.end(), row.output("dbias").begin());
}

const OperatorReference& reference_swish_layer_norm() { return row_reference<SwishLayerNormSpec>(); }

}  // namespace hstujit
