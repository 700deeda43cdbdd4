// One function decides the bucket of an operator's problem, with sequences and without.
#include "runtime/dispatch/problem_bucket.h"

#include "operations/configs/operation.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

// An operator of plain rows: nothing in its launches says a max_seq_len.
class RowsSpec final : public OpSpec {
 public:
  Family family() const override { return Family::kRow; }
  std::string_view op() const override { return "rows"; }
  Json to_json() const override { return {{"op", "rows"}}; }
  bool supports(Direction direction) const override { return direction == Direction::kForward; }
  Signature signature(Direction) const override {
    return {{"x", ArgumentKind::kTensor, ArgumentRole::kInput, DataType::kBf16, {{"L", 0}, {"", 64}}, 16, ""},
            {"out", ArgumentKind::kTensor, ArgumentRole::kOutput, DataType::kBf16, {{"L", 0}, {"", 64}}, 16, ""}};
  }
  Work work(Direction, const Lengths&) const override { return {}; }
  double error_bound(Direction) const override { return 0; }
};

Instance rows_instance() {
  Instance instance;
  instance.name = "rows";
  instance.spec = std::make_shared<RowsSpec>();
  instance.directions = {Direction::kForward};
  instance.max_seq_lens = {1000, 100000};
  return instance;
}

class ProblemBucketTest : public RuntimeTest {};

TEST_F(ProblemBucketTest, WithSequencesItIsTheLengthModes) {
  const Signature signature = make_instance().spec->signature(Direction::kForward);
  EXPECT_TRUE(has_sequences(signature));
  EXPECT_EQ(problem_bucket(signature, LengthMode::kPow2, 200, {}), 256);
  EXPECT_EQ(problem_bucket(signature, LengthMode::kStatic, 200, {150, 220}), 220);
  EXPECT_EQ(tuning_length(signature, make_instance(), 512), 512);
}

TEST_F(ProblemBucketTest, WithoutSequencesThereIsOneBucketForEveryRowCountAndMode) {
  const Signature signature = RowsSpec().signature(Direction::kForward);
  EXPECT_FALSE(has_sequences(signature));
  for (const LengthMode mode : {LengthMode::kPow2, LengthMode::kStatic, LengthMode::kFine, LengthMode::kExact}) {
    for (const int64_t rows : {1, 1000, 100000}) {
      EXPECT_EQ(problem_bucket(signature, mode, rows, {1000, 100000}), kSingleBucket);
    }
  }
  EXPECT_EQ(tuning_length(signature, rows_instance(), kSingleBucket), 100000);
}

TEST_F(ProblemBucketTest, AConfigListsTheBucketThatAnOpPrepares) {
  Config config;
  config.instances = {rows_instance()};
  const auto engine = make_engine();
  const auto keys = list_keys(*engine, config, "");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  ASSERT_EQ(keys->size(), 1u) << "one key for all row counts";
  EXPECT_EQ(keys->front().bucket, kSingleBucket);
}

}  // namespace
}  // namespace hstujit::test
