// The reference of split_2d_jagged against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/split_2d_jagged/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

Split2dJaggedSpec make_spec(SplitParams params) {
  params.width = 1;
  return Split2dJaggedSpec(params);
}

// To the left side 2, 0 and 1 rows, to the right one 2, 3 and 0.
TEST(Split2dJagged, FirstRowsGoLeft) {
  const Lengths lengths{{4, 3, 1}, {}, 4, {{"Ll", {2, 0, 1}}, {"Lr", {2, 3, 0}}}};
  RowValues values = {{"values", {1, 2, 3, 4, 5, 6, 7, 8}}};
  const auto output = [&](const SplitParams& params, const char* name) {
    return sequences_output(make_spec(params), Direction::kForward, lengths, values, name);
  };
  EXPECT_EQ(output({}, "left"), (Numbers{1, 2, 8}));
  EXPECT_EQ(output({}, "right"), (Numbers{3, 4, 5, 6, 7}));
  SplitParams params;
  params.prefix = true;
  values["n_prefix_to_right"] = {1};
  EXPECT_EQ(output(params, "left"), (Numbers{2, 3, 8}));
  EXPECT_EQ(output(params, "right"), (Numbers{1, 4, 5, 6, 7}));
  for (const double more_than_some_have : {2.0, 3.0, 100.0}) {
    values["n_prefix_to_right"] = {more_than_some_have};
    EXPECT_EQ(output(params, "left"), (Numbers{3, 4, 8}));
    EXPECT_EQ(output(params, "right"), (Numbers{1, 2, 5, 6, 7}));
  }
}

TEST(Split2dJagged, ASideMayBeDense) {
  SplitParams params;
  params.prefix = params.dense_left = true;
  const RowValues values = {{"values", {1, 2, 10, 20, 3, 4, 30}}, {"n_prefix_to_right", {2}}};
  const Lengths left{{2, 5}, {}, 5, {{"Lq", {2, 2}}, {"Lr", {0, 3}}}};
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, left, values, "left"), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, left, values, "right"), (Numbers{10, 20, 30}));
  params.dense_left = false;
  params.dense_right = true;
  const Lengths right{{2, 5}, {}, 5, {{"Lq", {2, 2}}, {"Ll", {0, 3}}}};
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, right, values, "left"), (Numbers{3, 4, 30}));
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, right, values, "right"), (Numbers{1, 2, 10, 20}));
}

// The same rows of the left side, wherever those of the right one would go.
TEST(Split2dJagged, TheLeftSideAlone) {
  const Lengths lengths{{4, 3, 1}, {}, 4, {{"Ll", {2, 0, 1}}, {"Lr", {2, 3, 0}}}};
  const RowValues values = {{"values", {1, 2, 3, 4, 5, 6, 7, 8}}, {"n_prefix_to_right", {1}}};
  SplitParams params;
  params.left_only = true;
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, lengths, values, "left"), (Numbers{1, 2, 8}));
  EXPECT_EQ(find_argument(make_spec(params).signature(Direction::kForward), "right"), -1);
  // 3 rows are read, and 3 written; the offsets of both sides.
  EXPECT_EQ(make_spec(params).work(Direction::kForward, lengths).bytes, 2 * 3 * 2 + 2 * 3 * 8);
  params.prefix = true;
  EXPECT_EQ(sequences_output(make_spec(params), Direction::kForward, lengths, values, "left"), (Numbers{2, 3, 8}));
}

}  // namespace
}  // namespace hstujit
