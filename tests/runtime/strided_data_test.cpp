// Slices of wider tensors: the same elements at other addresses, gaps poisoned.
#include "operations/tuning/data/strided_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hstujit {
namespace {

ProblemData small_problem(int alignment) {
  const nlohmann::ordered_json json = {{"op", "hstu_attention"}, {"heads", 3},      {"attn_dim", 16},
                                       {"hidden_dim", 8},        {"dtype", "fp16"}, {"alignment", alignment}};
  Lengths lengths;
  lengths.rows = {2, 0, 3};
  lengths.max_seq_len = 4;
  return make_problem_data(parse_op_spec(json, "op").value(), Direction::kForward, lengths, 5, 2).value();
}

class StridedData : public ::testing::TestWithParam<int> {};

TEST_P(StridedData, StridesAreTheSmallestThatTheAlignmentAllows) {
  const ProblemData strided = spread(small_problem(GetParam()));
  const auto q = static_cast<size_t>(find_argument(strided.signature, "q"));
  const int64_t gap = GetParam() / 2;
  EXPECT_THAT(strided.strides[q], ::testing::ElementsAre(3 * (16 + gap) + gap, 16 + gap, 1));
  EXPECT_EQ(strided.offsets[q], static_cast<size_t>(GetParam()));
  const auto offsets = static_cast<size_t>(find_argument(strided.signature, "seq_offsets"));
  EXPECT_TRUE(strided.strides[offsets].empty());
}

TEST_P(StridedData, GatherUndoesSpread) {
  const ProblemData packed = small_problem(GetParam());
  ProblemData strided = spread(packed);
  const auto out = static_cast<size_t>(find_argument(packed.signature, "out"));
  const auto v = static_cast<size_t>(find_argument(packed.signature, "v"));
  ASSERT_EQ(strided.images[out].size(), strided.images[v].size());  // the same shape and alignment
  // A kernel that copies v, extra rows of poison included.
  const auto gathered = gather(strided, out, strided.images[v]);
  ASSERT_TRUE(gathered.ok()) << gathered.status().message();
  EXPECT_EQ(*gathered, packed.images[v]);
}

TEST_P(StridedData, AWrittenGapIsFound) {
  const ProblemData strided = spread(small_problem(GetParam()));
  const auto out = static_cast<size_t>(find_argument(strided.signature, "out"));
  const size_t row = static_cast<size_t>(strided.strides[out][1]) * 2;
  for (const size_t gap :
       {size_t{0}, strided.offsets[out] + 8 * 2, strided.offsets[out] + row + 8 * 2, strided.images[out].size() - 1}) {
    std::vector<std::byte> image = strided.images[out];
    image[gap] = std::byte{0};
    EXPECT_EQ(gather(strided, out, image).status().code(), Code::kCheckFailed) << "byte " << gap;
  }
}

INSTANTIATE_TEST_SUITE_P(Alignments, StridedData, ::testing::Values(2, 4, 8, 16));

}  // namespace
}  // namespace hstujit
