// The reference of concat_2d_jagged against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/concat_2d_jagged/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

Concat2dJaggedSpec make_spec(JaggedSidesParams params) {
  params.width = 1;
  return Concat2dJaggedSpec(params);
}

// The left side has 2, 0 and 1 rows, the right one 2, 3 and 0.
TEST(Concat2dJagged, RightRowsFollowLeftOnes) {
  const Lengths lengths{{4, 3, 1}, {}, 4, {{"Ll", {2, 0, 1}}, {"Lr", {2, 3, 0}}}};
  RowValues values = {{"left", {1, 2, 3}}, {"right", {10, 20, 30, 40, 50}}};
  EXPECT_EQ(sequences_output(make_spec({}), Direction::kForward, lengths, values, "out"),
            (Numbers{1, 2, 10, 20, 30, 40, 50, 3}));
  JaggedSidesParams params;
  params.prefix = true;
  const auto out = [&](double prefix) {
    values["n_prefix_from_right"] = {prefix};
    return sequences_output(make_spec(params), Direction::kForward, lengths, values, "out");
  };
  EXPECT_EQ(out(0), (Numbers{1, 2, 10, 20, 30, 40, 50, 3}));
  EXPECT_EQ(out(1), (Numbers{10, 1, 2, 20, 30, 40, 50, 3}));
  EXPECT_EQ(out(3), (Numbers{10, 20, 1, 2, 30, 40, 50, 3})) << "longer than the right side of the first sequence";
  EXPECT_EQ(out(100), out(3));
}

TEST(Concat2dJagged, ASideMayBeDense) {
  JaggedSidesParams params;
  params.prefix = params.dense_left = true;
  const RowValues left = {{"left", {1, 2, 3, 4}}, {"right", {10, 20, 30}}, {"n_prefix_from_right", {2}}};
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, {{2, 5}, {}, 5, {{"Lq", {2, 2}}, {"Lr", {0, 3}}}},
                             left, "out"),
            (Numbers{1, 2, 10, 20, 3, 4, 30}));
  params.dense_left = false;
  params.dense_right = true;
  const RowValues right = {{"left", {10, 20, 30}}, {"right", {1, 2, 3, 4}}, {"n_prefix_from_right", {1}}};
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, {{2, 5}, {}, 5, {{"Lq", {2, 2}}, {"Ll", {0, 3}}}},
                             right, "out"),
            (Numbers{1, 2, 3, 10, 20, 30, 4}));
}

}  // namespace
}  // namespace hstujit
