// The reference of hstu_norm_mul_dropout against values worked out by hand from docs/ops-rows.md.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

HstuNormMulDropoutParams params_of(int64_t width) {
  HstuNormMulDropoutParams params;
  params.width = width;
  return params;
}

std::vector<double> values_of(const HstuNormMulDropoutParams& params, Direction direction, int64_t rows,
                              const RowValues& inputs, const char* name) {
  const HstuNormMulDropoutSpec spec(params);
  const auto at = static_cast<size_t>(find_argument(spec.signature(direction), name));
  return reference_of(spec, direction, rows, inputs).at(at).tensor.reals;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

// A layer norm of two elements without eps is (-1, 1) for the smaller and the larger one.
TEST(HstuNormMulDropout, ConcatByHand) {
  HstuNormMulDropoutParams params = params_of(2);
  params.concat_u = params.concat_x = true;
  RowValues values = {{"x", {3, 8}}, {"u", {4, -5}}, {"weight", {2, 3}}, {"bias", {10, 20}}};
  expect_near(values_of(params, Direction::kForward, 1, values, "out"), {4, -5, 3, 8, 4 * 8, -5 * 23});
  values["dout"] = {1, 2, 30, 40, 5, 6};
  expect_near(values_of(params, Direction::kBackward, 1, values, "dx"), {30, 40});
  expect_near(values_of(params, Direction::kBackward, 1, values, "du"), {1 + 5 * 8, 2 + 6 * 23});
  expect_near(values_of(params, Direction::kBackward, 1, values, "dweight"), {-5 * 4, 6 * -5});
  expect_near(values_of(params, Direction::kBackward, 1, values, "dbias"), {5 * 4, 6 * -5});
}

TEST(HstuNormMulDropout, GroupsByHand) {
  HstuNormMulDropoutParams params = params_of(4);
  params.group_norm = true;
  params.heads = 2;
  RowValues values = {{"x", {3, 8, -1, -2}}, {"u", {1, 2, 3, 4}}, {"weight", {2, 3}}, {"bias", {10, 20}}};
  expect_near(values_of(params, Direction::kForward, 1, values, "out"), {8, 2 * 12, 3 * 23, 4 * 17});
  values["dout"] = {1, 1, 1, 2};
  expect_near(values_of(params, Direction::kBackward, 1, values, "dweight"), {-1 + 2, 3 - 8});
  expect_near(values_of(params, Direction::kBackward, 1, values, "dbias"), {1 + 2, 3 + 8});
}

// The u of the result and the u that multiplies have functions of their own.
TEST(HstuNormMulDropout, ActivationsByHand) {
  HstuNormMulDropoutParams params = params_of(2);
  params.concat_u = params.silu_u = true;
  params.mul_u_activation = "sigmoid";
  const double u = std::log(3.0);
  const RowValues values = {{"x", {0, 1}}, {"u", {u, -u}}, {"weight", {1, 1}}, {"bias", {2, 3}}};
  expect_near(values_of(params, Direction::kForward, 1, values, "out"), {0.75 * u, -0.25 * u, 0.75 * 1, 0.25 * 4});
}

class Dropout : public testing::Test {
 protected:
  Dropout() : params_(params_of(kWidth)) {
    params_.concat_x = params_.dropout = true;
    values_["x"].resize(kRows * kWidth);
    for (size_t i = 0; i < values_["x"].size(); ++i) values_["x"][i] = 1 + static_cast<double>(i % 7);
    values_["u"].assign(kRows * kWidth, 1);
    values_["weight"].assign(kWidth, 1);
    values_["bias"].assign(kWidth, 9);
    values_["dout"].assign(2 * kRows * kWidth, 1);
    values_["eps"] = {0.1};
    values_["seed"] = {11};
    values_["offset"] = {5};
  }

  std::vector<double> forward(double ratio) {
    values_["dropout_ratio"] = {ratio};
    return values_of(params_, Direction::kForward, kRows, values_, "out");
  }

  static constexpr int64_t kRows = 400, kWidth = 24;
  HstuNormMulDropoutParams params_;
  RowValues values_;
};

TEST_F(Dropout, DropsTheRatioAndScalesTheRest) {
  const std::vector<double> all = forward(0);
  for (const double ratio : {0.25, 0.5, 0.96875}) {
    const std::vector<double> out = forward(ratio);
    double dropped = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == 0) {
        ++dropped;
      } else {
        EXPECT_NEAR(out[i], all[i] / (1 - ratio), 1e-9);
      }
    }
    const auto count = static_cast<double>(out.size());
    EXPECT_NEAR(dropped / count, ratio, 4 * std::sqrt(ratio * (1 - ratio) / count));
  }
  EXPECT_EQ(forward(1), std::vector<double>(all.size(), 0));
}

TEST_F(Dropout, BackwardDropsTheSame) {
  const std::vector<double> out = forward(0.5), du = values_of(params_, Direction::kBackward, kRows, values_, "du");
  for (size_t i = 0; i < du.size(); ++i)
    EXPECT_EQ(du[i] == 0, out[(i / kWidth * 2 + 1) * kWidth + i % kWidth] == 0) << i;
}

TEST_F(Dropout, FollowsFromSeedOffsetAndElementAlone) {
  const std::vector<double> out = forward(0.5);
  RowValues kept = values_;
  for (size_t i = 0; i < kWidth; ++i) values_["x"][i] *= -3;  // row 0
  const std::vector<double> changed = forward(0.5);
  for (size_t i = 2 * kWidth; i < out.size(); ++i) EXPECT_EQ(out[i], changed[i]) << i;
  for (size_t i = 0; i < kWidth; ++i) EXPECT_EQ(out[i] == 0, changed[i] == 0) << i;
  values_ = kept;
  for (const char* name : {"seed", "offset"}) {
    values_[name][0] += 1;
    const std::vector<double> other = forward(0.5);
    size_t same = 0;
    for (size_t i = 0; i < out.size(); ++i) same += (out[i] == 0) == (other[i] == 0) ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(out.size()), 0.5, 0.02) << name;
    values_ = kept;
  }
}

}  // namespace
}  // namespace hstujit
