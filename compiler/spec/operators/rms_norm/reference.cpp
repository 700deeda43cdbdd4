// The float64 reference of one row, from docs/ops.md.
#include <cmath>

#include "compiler/spec/operators/rms_norm/spec.h"

namespace hstujit {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

}  // namespace

void RmsNormSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const std::span<const double> x = row.input("x");
  const auto width = static_cast<double>(x.size());
  double square = 0;
  for (const double value : x) square += value * value / width;
  const double scale = 1 / std::sqrt(square + row.scalar("eps"));
  const std::span<const double> weight = params_.weight ? row.input("weight") : std::span<const double>();
  const auto factor = [&](size_t i) { return weight.empty() ? 1.0 : weight[i]; };

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) {
      const double z = x[i] * scale * factor(i);
      out[i] = params_.silu ? z * sigmoid(z) : z;
    }
    return;
  }

  // dx = (g - n * mean(g * n)) * scale, with n = x * scale, dz the gradient before silu, and g = dz * weight.
  const std::span<const double> dout = row.input("dout");
  const auto dz = [&](size_t i) { return params_.silu ? dout[i] * silu_slope(x[i] * scale * factor(i)) : dout[i]; };
  double mean_gn = 0;
  for (size_t i = 0; i < x.size(); ++i) mean_gn += dz(i) * factor(i) * x[i] * scale / width;
  const std::span<double> dx = row.output("dx"), terms = row.terms("dx");
  for (size_t i = 0; i < x.size(); ++i) {
    const double n = x[i] * scale, g = dz(i) * factor(i);
    dx[i] = (g - n * mean_gn) * scale;
    terms[i] = (std::abs(g) + std::abs(n * mean_gn)) * scale;
  }
  if (!params_.weight) return;
  const std::span<double> dweight = row.output("dweight");
  for (size_t i = 0; i < x.size(); ++i) dweight[i] = dz(i) * x[i] * scale;
}

}  // namespace hstujit
