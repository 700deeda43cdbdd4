// The lengths that a candidate is validated on.
#include "operations/tuning/data/adversarial_lengths.h"

#include <set>

#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

TEST(AdversarialLengths, CoverTilesAndStayWithinTheLimit) {
  const auto spec =
      parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 64}, {"hidden_dim", 64}, {"num_targets", true}}, "");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Lengths lengths = adversarial_lengths(**spec, Direction::kForward, 300, 1);
  EXPECT_THAT(lengths.rows, ::testing::IsSupersetOf({0, 1, 63, 64, 65, 127, 128, 129, 300}));
  ASSERT_EQ(lengths.num_targets.size(), lengths.rows.size());
  for (size_t i = 0; i < lengths.rows.size(); ++i) {
    EXPECT_LE(lengths.rows[i], 300);
    EXPECT_LE(lengths.num_targets[i], lengths.rows[i]);
  }
}

TEST(AdversarialLengths, ASmallBatchHasTheLongSequence) {
  const auto spec = parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 64}, {"hidden_dim", 64}}, "");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  for (const int64_t max : {1, 3}) {
    const Lengths lengths = adversarial_lengths(**spec, Direction::kForward, 300, 1, max);
    ASSERT_EQ(lengths.rows.size(), static_cast<size_t>(max));
    EXPECT_EQ(lengths.rows[0], 300);
  }
}

// Rows of no sequences: their number counts, and each candidate's results are compared one by one.
TEST(AdversarialLengths, WideRowsAreFewer) {
  const auto rows = [](int64_t width) {
    const auto spec = parse_op_spec({{"op", "layer_norm"}, {"width", width}}, "");
    EXPECT_TRUE(spec.ok()) << spec.status().message();
    return adversarial_lengths(**spec, Direction::kForward, 131072, 1).total_rows();
  };
  EXPECT_GT(rows(64), 20000);
  EXPECT_GT(rows(8192), 800);
  EXPECT_LE(rows(8192), 1024);
}

// A product of many columns costs the reference much for each row.
TEST(AdversarialLengths, RowsOfLargeProductsAreFewer) {
  for (const char* op : {"addmm", "addmm_wgrad"}) {
    const auto rows = [&](int64_t columns) {
      const auto spec = parse_op_spec({{"op", op}, {"k", columns}, {"n", columns}}, "");
      EXPECT_TRUE(spec.ok()) << spec.status().message();
      const Lengths lengths = adversarial_lengths(**spec, Direction::kForward, 131072, 1);
      EXPECT_LE((*spec)->work(Direction::kForward, lengths).flops, 1e10) << op << columns;
      return lengths.total_rows();
    };
    EXPECT_GT(rows(512), 3000) << op;
    EXPECT_GT(rows(8192), 64) << op << ": more than the rows of a wgmma";
  }
}

OpSpecPtr delta_operator(bool jagged_queries) {
  return *parse_op_spec(
      {{"op", "delta_hstu_attention"}, {"attn_dim", 64}, {"hidden_dim", 64}, {"jagged_queries", jagged_queries}}, "");
}

TEST(AdversarialLengths, HaveEveryKindOfDelta) {
  const Lengths lengths = adversarial_lengths(*delta_operator(true), Direction::kForward, 300, 1);
  EXPECT_THAT(lengths.rows_of("Lq"), ::testing::IsSupersetOf({0, 1, 15, 16, 17, 63, 64, 65, 128}));
  ASSERT_EQ(lengths.rows_of("Lq").size(), lengths.rows.size());
  int all = 0, more = 0;
  for (size_t i = 0; i < lengths.rows.size(); ++i) {
    all += lengths.rows_of("Lq")[i] == lengths.rows[i] ? 1 : 0;
    more += lengths.rows_of("Lq")[i] > lengths.rows[i] ? 1 : 0;
  }
  EXPECT_GE(all, 2);
  EXPECT_GE(more, 3);
}

TEST(AdversarialLengths, SequencesOfAUniformAxisHaveTheSameDeltaAndSeedsDiffer) {
  std::set<int64_t> seen;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Lengths lengths = adversarial_lengths(*delta_operator(false), Direction::kForward, 300, seed);
    ASSERT_EQ(lengths.rows_of("Lq").size(), lengths.rows.size());
    EXPECT_THAT(lengths.rows_of("Lq"), ::testing::Each(lengths.rows_of("Lq")[0]));
    seen.insert(lengths.rows_of("Lq")[0]);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 17, 64, 65, 130));
}

TEST(AdversarialLengths, AFewRowsOfQAllowALongerSequence) {
  const Lengths all = adversarial_lengths(
      **parse_op_spec({{"op", "hstu_attention"}, {"heads", 4}, {"attn_dim", 64}, {"hidden_dim", 64}}, ""),
      Direction::kForward, 1 << 14, 1);
  const Lengths last = adversarial_lengths(*delta_operator(true), Direction::kForward, 1 << 14, 1);
  EXPECT_GT(last.rows[0], all.rows[0]);
  EXPECT_GT(last.rows_of("Lq")[0], 128);
}

// Rows cost the reference little, but each candidate's results are compared.
TEST(AdversarialLengths, RowsAreNoMoreThanCandidatesCanBeComparedOn) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const Lengths wide =
        adversarial_lengths(**parse_op_spec({{"op", "layer_norm"}, {"width", 512}}, ""), direction, 1 << 20, 1);
    EXPECT_GT(wide.total_rows(), 4096);
    EXPECT_LE(wide.total_rows(), 16384);
  }
}

}  // namespace
}  // namespace hstujit::test
