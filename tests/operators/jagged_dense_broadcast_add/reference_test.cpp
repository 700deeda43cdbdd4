// The reference of jagged_dense_broadcast_add against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/jagged_dense_broadcast_add/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

TEST(JaggedDenseBroadcastAdd, ByHand) {
  SequenceParams params;
  params.width = 2;
  const JaggedDenseBroadcastAddSpec spec(params);
  const Lengths lengths{{2, 0, 1}, {}, 2, {}};
  const RowValues values = {{"jagged", {1, 2, 3, 4, 5, 6}}, {"dense", {10, 20, 30, 40, 50, 60}}};
  EXPECT_EQ(sequences_output(spec, Direction::kForward, lengths, values, "out"), (Numbers{11, 22, 13, 24, 55, 66}));
  // A sequence without rows has nothing that its row of dense was added to.
  EXPECT_EQ(sequences_output(spec, Direction::kBackward, lengths, {{"dout", {1, 2, 4, 8, 16, 32}}}, "ddense"),
            (Numbers{5, 10, 0, 0, 16, 32}));
}

}  // namespace
}  // namespace hstujit
