// Launches of clusters, against the fake driver: how many blocks share a tile.
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

class ClusterTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    const auto json = parse_json_text(R"({"name": "test", "op": "delta_hstu_attention", "heads": 4, "attn_dim": 16,
        "hidden_dim": 16, "max_seq_len": 16384})",
                                      "test");
    ASSERT_TRUE(json.ok());
    auto instance = parse_instance(*json, "test", "");
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    instance_ = *instance;
    // One consumer, and one block a multiprocessor.
    values_["HSTUJIT_OVERRIDE"] = R"({"block_m": 64, "block_n": 64, "stages": 6, "consumers": 1, "blocks_per_sm": 1})";
  }

  // Launches a batch of equal sequences on a fresh engine.
  Status launch(int64_t sequences, int64_t rows, int64_t delta, int64_t max_seq_len = -1) {
    if (max_seq_len < 0) max_seq_len = rows;
    const auto engine = make_engine();
    const CurrentContext context(*engine);
    auto op = Op::create(engine, {instance_, Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}});
    if (!op.ok()) return op.status();
    HSTUJIT_RETURN_IF_ERROR((*op)->prepare(std::max<int64_t>(max_seq_len, 1), -1));
    Lengths lengths;
    lengths.rows.assign(static_cast<size_t>(sequences), rows);
    lengths.other_rows["Lq"].assign(static_cast<size_t>(sequences), delta);
    lengths.max_seq_len = 16384;
    FakeLaunch values(instance_, lengths);
    values.value("max_seq_len").integer = max_seq_len;
    return (*op)->launch(values.values.data(), values.values.size(), nullptr);
  }

  void expect_cluster(int64_t sequences, int64_t rows, int64_t delta, unsigned cluster) {
    SCOPED_TRACE(sequences);
    const Status status = launch(sequences, rows, delta);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto tiles = static_cast<unsigned>((delta + 63) / 64 * 4 * sequences);
    EXPECT_EQ(fake().cluster, cluster);
    EXPECT_EQ(fake().grid, tiles * cluster);
  }

  Instance instance_;
};

TEST_F(ClusterTest, FewTilesShareTheGpuAndManyDoNot) {
  // Eight groups of 16 multiprocessors have room for 8 clusters of 9 to 16 blocks, 16 of 6 to 8, 24 of 5, 32 of 4, 40
  // of 3.
  expect_cluster(1, 2048, 1, 16);
  expect_cluster(1, 2048, 65, 16);  // 8 tiles
  expect_cluster(3, 2048, 64, 8);   // 12
  expect_cluster(5, 2048, 64, 5);   // 20
  expect_cluster(8, 2048, 64, 4);
  expect_cluster(9, 2048, 64, 3);  // 36: a fourth block each would have to wait
  expect_cluster(64, 300, 64, 1);
}

TEST_F(ClusterTest, ABlockGetsTwoColumnBlocksAtLeast) {
  expect_cluster(1, 512, 1, 4);
  expect_cluster(1, 255, 1, 1);
  expect_cluster(1, 256, 1, 2);
  expect_cluster(1, 400, 1, 3);
}

TEST_F(ClusterTest, NoLargerThanTheDeviceRuns) {
  fake().largest_cluster = 8;
  expect_cluster(1, 2048, 1, 8);
  fake().largest_cluster = 1;
  expect_cluster(1, 2048, 1, 1);
}

TEST_F(ClusterTest, ADriverThatCannotSayGetsNone) {
  fake().failing = "cuOccupancyMaxActiveClusters";
  expect_cluster(1, 2048, 1, 1);
}

TEST_F(ClusterTest, SequencesWithoutRowsAreLaunchedForTheirZeros) {
  const Status status = launch(2, 0, 4, 64);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake().launches, 1);
  EXPECT_EQ(fake().cluster, 1u);
}

TEST_F(ClusterTest, ALengthOfZeroIsNoDivisor) {
  const Status status = launch(2, 0, 4, 0);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("max_seq_len is 0, and there are outputs to write; it must be 1 or more where "
                        "scaling_seqlen is not positive"));
  EXPECT_EQ(fake().launches, 0);
}

TEST_F(ClusterTest, AFailureNamesTheKernel) {
  fake().failing = "cuLaunchKernelEx";
  const Status status = launch(1, 2048, 1);
  EXPECT_EQ(status.code(), Code::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("cuLaunchKernelEx"));
  EXPECT_THAT(status.message(), HasSubstr("delta_hstu_attention_forward_sm90"));
}

}  // namespace
}  // namespace hstujit::test
