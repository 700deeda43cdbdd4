#include "compiler/spec/row_norms.h"

#include <cmath>

namespace hstujit {

NormedElements norm_of(RowNorm norm, std::span<const double> x, double eps) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, square = 0;
  if (norm == RowNorm::kLayer) {
    for (const double value : x) mean += value / count;
  }
  for (const double value : x) square += (value - mean) * (value - mean) / count;
  NormedElements normed;
  normed.rstd = 1 / std::sqrt(square + eps);
  normed.n.reserve(x.size());
  for (const double value : x) normed.n.push_back((value - mean) * normed.rstd);
  return normed;
}

// dx = (g - mean of g - n * mean of (g * n)) * rstd, without the mean of g for the root mean square.
void add_norm_gradient(RowNorm norm, const NormedElements& normed, std::span<const double> g, std::span<double> dx,
                       std::span<double> terms) {
  const auto count = static_cast<double>(g.size());
  double mean_g = 0, mean_gn = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    if (norm == RowNorm::kLayer) mean_g += g[i] / count;
    mean_gn += g[i] * normed.n[i] / count;
  }
  for (size_t i = 0; i < g.size(); ++i) {
    const double along = normed.n[i] * mean_gn;
    dx[i] += (g[i] - mean_g - along) * normed.rstd;
    terms[i] += (std::abs(g[i]) + std::abs(mean_g) + std::abs(along)) * normed.rstd;
  }
}

void add_residual_gradient(std::span<const double> dresidual, std::span<double> dx, std::span<double> terms) {
  for (size_t i = 0; i < dx.size(); ++i) {
    dx[i] += dresidual[i];
    terms[i] += std::abs(dresidual[i]);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double sigmoid_slope(double x) { return sigmoid(x) * (1 - sigmoid(x)); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

}  // namespace hstujit
