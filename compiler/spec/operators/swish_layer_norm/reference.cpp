// The float64 reference of one row, from docs/ops.md.
#include <cmath>

#include "compiler/spec/operators/swish_layer_norm/spec.h"
#include "compiler/spec/row_norms.h"

namespace hstujit {

void SwishLayerNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const std::span<const double> x = row.input("x");
  const NormedElements normed = norm_of(RowNorm::kLayer, x, row.scalar("eps"));
  const auto factor = [&](size_t i) { return params_.weight ? row.input("weight")[i] : 1.0; };
  const auto z = [&](size_t i) { return normed.n[i] * factor(i) + (params_.bias ? row.input("bias")[i] : 0.0); };

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * sigmoid(z(i));
    return;
  }

  const std::span<const double> dout = row.input("dout");
  const std::span<double> dx = row.output("dx"), terms = row.terms("dx");
  std::vector<double> g(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double dz = dout[i] * x[i] * sigmoid_slope(z(i));
    g[i] = dz * factor(i);
    dx[i] = dout[i] * sigmoid(z(i));
    terms[i] = std::abs(dx[i]);
    if (params_.weight) row.output("dweight")[i] = dz * normed.n[i];
    if (params_.bias) row.output("dbias")[i] = dz;
  }
  add_norm_gradient(RowNorm::kLayer, normed, g, dx, terms);
}

}  // namespace hstujit
