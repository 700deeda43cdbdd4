// The reference of layer_norm against values worked out by hand from docs/ops-rows.md.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/layer_norm/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

TEST(LayerNorm, ByHand) {
  LayerNormParams params;
  params.width = 4;
  const LayerNormSpec spec(params);
  RowValues values = {{"x", {1, 3, 5, 7, -6, -2, 2, 6}}, {"weight", {1, 2, 0.5, -1}}, {"bias", {10, 20, 30, 40}}};
  // Deviations -3, -1, 1, 3 of variance 5; twice that in the second row, so n is the same.
  const double s = 1 / std::sqrt(5.0);
  std::vector<double> both;
  for (int row = 0; row < 2; ++row) both.insert(both.end(), {10 - 3 * s, 20 - 2 * s, 30 + 0.5 * s, 40 - 3 * s});
  expect_near(reference_of(spec, Direction::kForward, 2, values).back().tensor.reals, both);

  values["dout"] = {1, 0, 0, 0, 0, 0, 2, 0};
  const std::vector<HostValue> backward = reference_of(spec, Direction::kBackward, 2, values);
  // Row 0: g = (1, 0, 0, 0), mean of g 1/4, mean of g * n -3s/4. Row 1: g = (0, 0, 1, 0), 1/4 and s/4, over twice s.
  const auto dx = [&](double g, double n, double mean_gn, double scale) {
    return (g - 0.25 - n * s * mean_gn) * scale;
  };
  expect_near(backward[4].tensor.reals, {dx(1, -3, -0.75 * s, s), dx(0, -1, -0.75 * s, s), dx(0, 1, -0.75 * s, s),
                                         dx(0, 3, -0.75 * s, s), dx(0, -3, 0.25 * s, s / 2), dx(0, -1, 0.25 * s, s / 2),
                                         dx(1, 1, 0.25 * s, s / 2), dx(0, 3, 0.25 * s, s / 2)});
  expect_near(backward[5].tensor.reals, {-3 * s, 0, 2 * s, 0});
  expect_near(backward[6].tensor.reals, {1, 0, 2, 0});
}

TEST(LayerNorm, TheGradientAroundTheNormIsAdded) {
  LayerNormParams params;
  params.width = 4;
  const LayerNormSpec plain(params);
  params.residual = true;
  const LayerNormSpec residual(params);
  EXPECT_EQ(find_argument(residual.signature(Direction::kForward), kResidualGradient), -1);
  RowValues values = {{"x", {1, 3, 5, 7}}, {"weight", {1, 2, 0.5, -1}}, {"dout", {1, 0, -2, 3}}};
  std::vector<double> dx = reference_of(plain, Direction::kBackward, 1, values)[4].tensor.reals;
  values["dresidual"] = {10, 20, 30, 40};
  for (size_t i = 0; i < dx.size(); ++i) dx[i] += values["dresidual"][i];
  const std::vector<HostValue> backward = reference_of(residual, Direction::kBackward, 1, values);
  expect_near(backward[static_cast<size_t>(find_argument(residual.signature(Direction::kBackward), "dx"))].tensor.reals,
              dx);
}

}  // namespace
}  // namespace hstujit
