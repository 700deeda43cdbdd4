// The reference of dense_to_jagged against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/dense_to_jagged/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

TEST(DenseToJagged, RowsBehindMaxLenAreZero) {
  SequenceParams params;
  params.width = 1;
  // Sequences of 2, 0 and 4 rows, of 3 that dense has.
  EXPECT_EQ(sequences_output(DenseToJaggedSpec(params), Direction::kForward, {{2, 0, 4}, {}, 4, {{"Lq", {3, 3, 3}}}},
                             {{"dense", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"max_len", {3}}}, "out"),
            (Numbers{1, 2, 7, 8, 9, 0}));
}

}  // namespace
}  // namespace hstujit
