// The float64 reference of one row, from docs/ops.md.
#include <cmath>

#include "compiler/spec/operators/layer_norm/spec.h"

namespace hstujit {

void LayerNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const std::span<const double> x = row.input("x");
  const auto width = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / width;
  for (const double value : x) variance += (value - mean) * (value - mean) / width;
  const double scale = 1 / std::sqrt(variance + row.scalar("eps"));
  const std::span<const double> weight = params_.weight ? row.input("weight") : std::span<const double>();
  const auto factor = [&](size_t i) { return weight.empty() ? 1.0 : weight[i]; };

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) {
      out[i] = (x[i] - mean) * scale * factor(i);
      if (params_.bias) out[i] += row.input("bias")[i];
    }
    return;
  }

  // dx = (g - mean(g) - n * mean(g * n)) * scale, with n the normalised row and g = dout * weight.
  const std::span<const double> dout = row.input("dout");
  double mean_g = 0, mean_gn = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double g = dout[i] * factor(i);
    mean_g += g / width;
    mean_gn += g * (x[i] - mean) * scale / width;
  }
  const std::span<double> dx = row.output("dx"), terms = row.terms("dx");
  for (size_t i = 0; i < x.size(); ++i) {
    const double n = (x[i] - mean) * scale, g = dout[i] * factor(i);
    dx[i] = (g - mean_g - n * mean_gn) * scale;
    terms[i] = (std::abs(g) + std::abs(mean_g) + std::abs(n * mean_gn)) * scale;
  }
  if (params_.weight) {
    const std::span<double> dweight = row.output("dweight");
    for (size_t i = 0; i < x.size(); ++i) dweight[i] = dout[i] * (x[i] - mean) * scale;
  }
  if (params_.bias) {
    const std::span<double> dbias = row.output("dbias");
    for (size_t i = 0; i < x.size(); ++i) dbias[i] = dout[i];
  }
}

}  // namespace hstujit
