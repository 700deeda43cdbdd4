// The reference of swish_layer_norm against values worked out by hand from docs/ops-rows.md.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/swish_layer_norm/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

TEST(SwishLayerNorm, ByHand) {
  SwishLayerNormParams params;
  params.width = 2;
  const SwishLayerNormSpec spec(params);
  // Deviations -2 and 2 of variance 4, so that the normalised row is (-1, 1), and z is (ln 3, -ln 4).
  const double ln3 = std::log(3.0), ln4 = std::log(4.0);
  RowValues values = {{"x", {1, 5}}, {"weight", {-1, 2}}, {"bias", {ln3 - 1, -ln4 - 2}}};
  const std::vector<double> out = reference_of(spec, Direction::kForward, 1, values).back().tensor.reals;
  EXPECT_NEAR(out[0], 1 * 0.75, 1e-12);
  EXPECT_NEAR(out[1], 5 * 0.2, 1e-12);

  values["dout"] = {16, 10};
  const std::vector<HostValue> backward = reference_of(spec, Direction::kBackward, 1, values);
  // dz = dout * x * s * (1 - s) is (3, 8). Of two elements the normalised ones do not follow x but for its order, so
  // dx is dout * s alone.
  const auto expect = [&](const char* name, double a, double b) {
    const auto at = static_cast<size_t>(find_argument(spec.signature(Direction::kBackward), name));
    EXPECT_NEAR(backward[at].tensor.reals[0], a, 1e-12) << name;
    EXPECT_NEAR(backward[at].tensor.reals[1], b, 1e-12) << name;
  };
  expect("dx", 12, 2);
  expect("dweight", -3, 8);
  expect("dbias", 3, 8);
}

}  // namespace
}  // namespace hstujit
