// Norms of a row or of a group of its elements, in float64: what references of the row family share (docs/ops-rows.md,
// "layer_norm", "rms_norm").
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace hstujit {

// Documents the parameter "residual".
inline constexpr std::string_view kResidualHelp =
    "x also goes around the norm: backward takes dresidual, its gradient there, and adds it to dx";

enum class RowNorm { kLayer, kRms };  // over the deviation, and less the mean; over the root mean square

struct NormedElements {
  std::vector<double> n;  // the elements without weight and bias
  double rstd = 0;        // what they were multiplied with
};

NormedElements norm_of(RowNorm norm, std::span<const double> x, double eps);

// Adds to dx what the gradients g of n make of it, and to `terms` the sizes of what that is the difference of.
void add_norm_gradient(RowNorm norm, const NormedElements& normed, std::span<const double> g, std::span<double> dx,
                       std::span<double> terms);

// The same of the gradient that the rows have where they go around the operator.
void add_residual_gradient(std::span<const double> dresidual, std::span<double> dx, std::span<double> terms);

double sigmoid(double x);
// Derivatives.
double sigmoid_slope(double x);
double silu_slope(double x);

}  // namespace hstujit
