// The reference of jagged_to_padded_dense against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/jagged_to_padded_dense/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

// Sequences of 2, 0 and 4 rows.
Numbers padded(bool padding_value, double max_len) {
  JaggedToPaddedDenseParams params;
  params.width = 2;
  params.padding_value = padding_value;
  const auto rows = static_cast<int64_t>(max_len);
  return sequences_output(
      JaggedToPaddedDenseSpec(params), Direction::kForward, {{2, 0, 4}, {}, 4, {{"Lq", {rows, rows, rows}}}},
      {{"values", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, {"padding_value", {-1}}, {"max_len", {max_len}}}, "out");
}

TEST(JaggedToPaddedDense, ShortSequencesArePaddedAndLongOnesCut) {
  EXPECT_EQ(padded(false, 3), (Numbers{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(padded(false, 1), (Numbers{1, 2, 0, 0, 5, 6}));
  EXPECT_EQ(padded(false, 0), Numbers());
}

TEST(JaggedToPaddedDense, PaddingHasTheValue) {
  EXPECT_EQ(padded(true, 3), (Numbers{1, 2, 3, 4, -1, -1, -1, -1, -1, -1, -1, -1, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace hstujit
