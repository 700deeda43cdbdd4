// The references of take_last_rows and of its inverse against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/place_last_rows/spec.h"
#include "compiler/spec/operators/take_last_rows/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

SequenceParams of_width(int64_t width) {
  SequenceParams params;
  params.width = width;
  return params;
}

// Sequences of 2, 0, 4 and 1 rows, and 1, 0, 3 and 0 last ones.
const Lengths kLengths{{2, 0, 4, 1}, {}, 4, {{"Lq", {1, 0, 3, 0}}}};

TEST(TakeLastRows, TakesThemFromTheEndOfEachSequence) {
  EXPECT_EQ(sequences_output(TakeLastRowsSpec(of_width(1)), Direction::kForward, kLengths,
                             {{"values", {1, 2, 3, 4, 5, 6, 7}}}, "out"),
            (Numbers{2, 4, 5, 6}));
}

TEST(TakeLastRows, RowsBeforeASequenceAreZero) {
  EXPECT_EQ(sequences_output(TakeLastRowsSpec(of_width(2)), Direction::kForward, {{1, 2}, {}, 2, {{"Lq", {3, 1}}}},
                             {{"values", {1, 2, 3, 4, 5, 6}}}, "out"),
            (Numbers{0, 0, 0, 0, 1, 2, 5, 6}));
}

TEST(PlaceLastRows, PlacesThemBehindZeros) {
  EXPECT_EQ(sequences_output(PlaceLastRowsSpec(of_width(1)), Direction::kForward, kLengths, {{"values", {1, 2, 3, 4}}},
                             "out"),
            (Numbers{0, 1, 0, 2, 3, 4, 0}));
}

TEST(PlaceLastRows, RowsBeforeASequenceAreLeftOut) {
  EXPECT_EQ(sequences_output(PlaceLastRowsSpec(of_width(1)), Direction::kForward, {{1, 2}, {}, 2, {{"Lq", {3, 1}}}},
                             {{"values", {1, 2, 3, 4}}}, "out"),
            (Numbers{3, 0, 4}));
}

}  // namespace
}  // namespace hstujit
