// Launches without rows, without sequences and with lengths of 0, against the fake driver.
#include "tests/runtime/launch_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

TEST_F(LaunchTest, NothingToWriteIsDoneWithoutALaunch) {
  Lengths empty;
  empty.rows = {0, 0};
  empty.max_seq_len = 200;
  launch_ = std::make_unique<FakeLaunch>(make_instance(kBf16), empty);
  EXPECT_TRUE(launch().ok());
  empty.rows = {};
  launch_ = std::make_unique<FakeLaunch>(make_instance(kBf16), empty);
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(fake().launches, 0);
}

TEST_F(LaunchTest, ALengthOfZeroIsRefusedWhileThereAreRowsToWrite) {
  ASSERT_TRUE(op_->prepare(64, -1).ok());
  launch_->value("max_seq_len").integer = 0;
  expect_refused("max_seq_len is 0, and there are outputs to write; it must be 1 or more");
  Lengths none;
  none.rows = {0, 0};
  none.max_seq_len = 0;
  launch_ = std::make_unique<FakeLaunch>(make_instance(kBf16), none);
  EXPECT_TRUE(launch().ok()) << "no rows";
  // Rows that belong to no sequence are nobody's.
  launch_ = std::make_unique<FakeLaunch>(make_instance(kBf16), lengths_);
  launch_->value("max_seq_len").integer = 0;
  launch_->tensor("seq_offsets").shape[0] = 1;
  const Status nobodys = launch();
  EXPECT_TRUE(nobodys.ok()) << nobodys.message();
  EXPECT_EQ(fake().launches, 0);
}

// Without rows q has no address that a map could have, and the outputs that are written may be as small as a number.
TEST_F(LaunchTest, AMapOfNoRowsHasAnAlignedAddressOfAnOutputWithElements) {
  const Instance instance = make_instance(R"(, "dtype": "bf16", "attn_scale": "scalar")");
  FakeLaunch backward(instance, {.rows = {0, 0}, .num_targets = {}, .max_seq_len = 64}, kDLCUDA, Direction::kBackward);
  const Signature& signature = backward.problem.signature;
  DLTensor& slope = backward.tensor("dattn_scale");
  slope.data = static_cast<char*>(slope.data) + 4;
  LaunchPlan plan;
  plan.kernel_name = "k";
  plan.threads = 32;
  ParamSlot map;
  map.name = "q";
  map.kind = ParamSlot::Kind::kTensorMap;
  map.argument = find_argument(signature, "q");
  map.map = {{{2, 64}, {1, 1}, {0, 64}}, 128};
  plan.slots = {map};
  const auto launcher = make_launcher(signature, plan);
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  const Status status = (*launcher)->launch(backward.values.data(), backward.values.size(), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake().tensor_maps, 1);
  EXPECT_EQ(fake().launches, 1);
}

TEST_F(LaunchTest, WithoutRowsASumOverAllOfThemIsZeroWhateverMaxSeqLenIs) {
  const Instance instance = make_instance(R"(, "dtype": "bf16", "attn_scale": "scalar")");
  for (const int64_t rows : {0, 1}) {
    FakeLaunch backward(instance, {.rows = {rows, 0}, .num_targets = {}, .max_seq_len = rows}, kDLCUDA,
                        Direction::kBackward);
    auto* const slope = static_cast<float*>(backward.tensor("dattn_scale").data);
    *slope = 7;
    backward.value("max_seq_len").integer = 0;
    GridFactor tiles;
    tiles.source = GridFactor::Source::kScalar;
    tiles.argument = backward.index("max_seq_len");
    tiles.divisor = 64;
    const Status status = launch_of_grid(backward, tiles);
    EXPECT_EQ(status.ok(), rows == 0) << status.message();
    if (rows == 1) {
      EXPECT_EQ(status.message(), "max_seq_len is 0, and there are outputs to write; it must be 1 or more");
    }
    EXPECT_EQ(*slope, rows == 0 ? 0 : 7);
    EXPECT_EQ(fake().launches, 0);
  }
}

TEST_F(LaunchTest, WithoutSequencesASumOverAllOfThemIsZero) {
  const Instance instance = make_instance(R"(, "dtype": "bf16", "attn_scale": "scalar")");
  FakeLaunch backward(instance, {.rows = {}, .num_targets = {}, .max_seq_len = 64}, kDLCUDA, Direction::kBackward);
  auto* const slope = static_cast<float*>(backward.tensor("dattn_scale").data);
  *slope = 7;
  GridFactor batch;
  batch.source = GridFactor::Source::kSize;
  batch.argument = backward.index("seq_offsets");
  batch.bias = -1;
  const Status status = launch_of_grid(backward, batch);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*slope, 0);
  EXPECT_EQ(fake().launches, 0);
  fake().failing = "cuMemsetD8Async";
  EXPECT_THAT(launch_of_grid(backward, batch).message(), HasSubstr("cuMemsetD8Async failed"));
}

TEST_F(LaunchTest, WithoutSequencesASumIsWhatItIsAddedTo) {
  const Instance instance = make_instance(R"(, "dtype": "bf16", "attn_scale": "scalar", "adds_gradients": true)");
  FakeLaunch backward(instance, {.rows = {}, .num_targets = {}, .max_seq_len = 64}, kDLCUDA, Direction::kBackward);
  auto* const slope = static_cast<float*>(backward.tensor("dattn_scale").data);
  auto* const before = static_cast<float*>(backward.tensor("dattn_scale_before").data);
  *slope = 7;
  *before = 3;
  GridFactor batch;
  batch.source = GridFactor::Source::kSize;
  batch.argument = backward.index("seq_offsets");
  batch.bias = -1;
  Status status = launch_of_grid(backward, batch);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*slope, 3);
  backward.tensor("dattn_scale").data = before;
  status = launch_of_grid(backward, batch);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*before, 3);
}

}  // namespace
}  // namespace hstujit::test
