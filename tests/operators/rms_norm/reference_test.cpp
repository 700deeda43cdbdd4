// The reference of rms_norm against values worked out by hand from docs/ops-rows.md.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/rms_norm/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

TEST(RmsNorm, ByHand) {
  RmsNormParams params;
  params.width = 4;
  params.silu = true;
  const RmsNormSpec spec(params);
  // Mean square 25 and 100.
  const auto forward =
      reference_of(spec, Direction::kForward, 2, {{"x", {1, 5, 5, 7, 2, 10, 10, 14}}, {"weight", {1, 2, 0.5, -1}}});
  const auto silu = [](double z) { return z / (1 + std::exp(-z)); };
  const std::vector<double> row = {silu(0.2), silu(2), silu(0.5), silu(-1.4)};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(forward.back().tensor.reals[i], row[i % 4], 1e-12);
}

TEST(RmsNorm, TheGradientAroundTheNormIsAdded) {
  RmsNormParams params;
  params.width = 3;
  const RmsNormSpec plain(params);
  params.residual = true;
  const RmsNormSpec residual(params);
  RowValues values = {{"x", {1, 2, -3}}, {"weight", {1, 2, 0.5}}, {"dout", {1, 0, -2}}, {"dresidual", {10, 20, 30}}};
  const auto dx = [&](const RmsNormSpec& spec) {
    const auto place = static_cast<size_t>(find_argument(spec.signature(Direction::kBackward), "dx"));
    return reference_of(spec, Direction::kBackward, 1, values)[place].tensor.reals;
  };
  const std::vector<double> without = dx(plain), with = dx(residual);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(with[i], without[i] + values["dresidual"][i], 1e-12);
}

}  // namespace
}  // namespace hstujit
