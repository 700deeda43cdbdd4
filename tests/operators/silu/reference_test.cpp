// The reference of silu against values worked out by hand from docs/ops-rows.md, and its gradient against differences.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/silu/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

SiluSpec silu(int64_t width) {
  SiluParams params;
  params.width = width;
  return SiluSpec(params);
}

TEST(Silu, ByHand) {
  const auto forward = reference_of(silu(3), Direction::kForward, 1, {{"x", {0, std::log(3), -std::log(3)}}});
  const std::vector<double>& out = forward.back().tensor.reals;
  EXPECT_EQ(out[0], 0);
  EXPECT_NEAR(out[1], 0.75 * std::log(3), 1e-12);
  EXPECT_NEAR(out[2], -0.25 * std::log(3), 1e-12);
}

TEST(Silu, GradientIsTheSlope) {
  constexpr double kStep = 1e-5;
  for (const double x : {-3.0, -0.5, 0.0, 1.25, 8.0}) {
    const auto at = [](double value) {
      return reference_of(silu(1), Direction::kForward, 1, {{"x", {value}}}).back().tensor.reals[0];
    };
    const auto backward = reference_of(silu(1), Direction::kBackward, 1, {{"x", {x}}, {"dout", {2}}});
    EXPECT_NEAR(backward.back().tensor.reals[0], 2 * (at(x + kStep) - at(x - kStep)) / (2 * kStep), 1e-8) << x;
  }
}

}  // namespace
}  // namespace hstujit
