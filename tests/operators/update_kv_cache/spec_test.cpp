// update_kv_cache: what it takes, what its steps are, its reference, and what is refused.
#include "compiler/spec/batch.h"
#include "tests/operators/kv_cases.h"

namespace hstujit {
namespace {

constexpr const char* kOp = "update_kv_cache";

TEST(UpdateKvCache, TakesRowsAndGivesCaches) {
  const OpSpecPtr spec = *parse_kv(kOp);
  EXPECT_EQ(arguments_of(*spec),
            "k bf16(L, 16), kv_caching_offsets int64(B+1), delta_offsets int64(B+1), v bf16(L, 32), "
            "k_cache bf16(Ll, 16), v_cache bf16(Ll, 32)");
  EXPECT_FALSE(spec->supports(Direction::kBackward));
  EXPECT_EQ(spec->signature(Direction::kForward)[4].shape[0].offsets, "kv_caching_offsets");
  EXPECT_EQ(spec->program(Direction::kForward)->steps.size(), 2u);
  EXPECT_EQ(key_text(*spec->program(Direction::kForward)->steps[0].spec),
            R"({"op":"split_2d_jagged","width":16,"left_only":true})");
}

TEST(UpdateKvCache, KeepsTheFirstRowsOfEachSequence) {
  const OpSpecPtr spec = *parse_kv(kOp);
  const Lengths lengths{{4, 2, 3}, {}, 4, {{"Ll", {3, 0, 1}}, {"Lr", {1, 2, 2}}}};
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 1);
  EXPECT_EQ(tensor_of(*spec, values, "kv_caching_offsets").integers, (std::vector<int64_t>{0, 3, 3, 4}));
  EXPECT_EQ(tensor_of(*spec, values, "delta_offsets").integers, (std::vector<int64_t>{0, 1, 3, 5}));
  tensor_of(*spec, values, "k") = tensor_of_rows({1, 2, 3, 4, 5, 6, 7, 8, 9}, 16);
  tensor_of(*spec, values, "v") = tensor_of_rows({-1, -2, -3, -4, -5, -6, -7, -8, -9}, 32);
  spec->reference(Direction::kForward, lengths, values);
  EXPECT_EQ(rows_of(tensor_of(*spec, values, "k_cache")), (std::vector<double>{1, 2, 3, 7}));
  EXPECT_EQ(rows_of(tensor_of(*spec, values, "v_cache")), (std::vector<double>{-1, -2, -3, -7}));
  // Rows that are not cached are not read. Both steps read the offsets.
  EXPECT_EQ(spec->work(Direction::kForward, lengths).bytes, 2 * 4 * (16 + 32) * 2 + 2 * 3 * 8);
}

TEST(UpdateKvCache, BatchesHaveRowsOnEveryAxis) {
  Instance instance;
  instance.spec = *parse_kv(kOp);
  instance.lengths.list = {40, 7, 0, 16};
  const Lengths lengths = make_lengths(instance, 40);
  for (size_t b = 0; b < 4; ++b) EXPECT_EQ(lengths.rows_of("Ll")[b] + lengths.rows_of("Lr")[b], lengths.rows[b]);
  EXPECT_GT(lengths.total_rows("Ll"), 0);
  EXPECT_GT(lengths.total_rows("Lr"), 0);
}

// Meaning of left_only for split_2d_jagged: no right output, and no gradient.
TEST(UpdateKvCache, SplitOfTheLeftSideAlone) {
  const auto split = [](bool left_only) {
    return *parse_op_spec({{"op", "split_2d_jagged"}, {"width", 16}, {"left_only", left_only}}, "");
  };
  EXPECT_EQ(key_text(*split(false)), R"({"op":"split_2d_jagged","width":16})");
  EXPECT_EQ(arguments_of(*split(false)),
            "values bf16(L, 16), offsets_left int64(B+1), offsets_right int64(B+1), left bf16(Ll, 16), right bf16(Lr, "
            "16)");
  EXPECT_EQ(arguments_of(*split(true)),
            "values bf16(L, 16), offsets_left int64(B+1), offsets_right int64(B+1), left bf16(Ll, 16)");
  EXPECT_TRUE(split(false)->supports(Direction::kBackward));
  EXPECT_FALSE(split(true)->supports(Direction::kBackward));
}

}  // namespace
}  // namespace hstujit
