// A key that was tuned on another device of the same architecture.
#include "operations/configs/operation.h"
#include "runtime/dispatch/kernel_choice.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBucket = 1024;

class NearestDevice : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    spec_ = make_instance().spec;
    engine_ = make_engine();
  }
  // The i-th of the cost model's list on that device.
  KernelConfig candidate(const std::string& device, size_t i) const {
    return search_space(*spec_, Direction::kForward, *known_device(device), heuristic_size(kBucket))
        .candidates.at(i)
        .config;
  }
  void record(const std::string& device, const KernelConfig& winner) {
    TuningRecord record;
    record.key = tuning_key(*spec_, Direction::kForward, *known_device(device), kBucket);
    record.workload = "batch";
    record.timed = {{key_text(winner), "batch", "source", 10, 0.1}};
    ASSERT_TRUE(engine_->tuning().add(record).ok());
  }
  KernelChoice choice(const std::string& device) {
    const auto choice = choose_kernel(*engine_, *spec_, Direction::kForward, *known_device(device), kBucket);
    EXPECT_TRUE(choice.ok()) << choice.status().message();
    return choice.ok() ? *choice : KernelChoice{};
  }

  OpSpecPtr spec_;
  EnginePtr engine_;
};

TEST_F(NearestDevice, GivesItsWinnerAndIsNamed) {
  record("H200", candidate("H200", 3));
  const KernelChoice chosen = choice("H20");
  EXPECT_EQ(chosen.config, candidate("H200", 3));
  EXPECT_FALSE(chosen.tuned) << "nothing was timed on an H20";
  EXPECT_EQ(chosen.nearest, "NVIDIA H200");
  EXPECT_THAT(chosen.why, HasSubstr("untuned on NVIDIA H20 (78 multiprocessors); on NVIDIA H200 (132), the nearest "
                                    "device with a record, the tuning database's winner"));
}

TEST_F(NearestDevice, IsTheOneOfTheMostSimilarSize) {
  record("H200", candidate("H200", 3));
  record("H100 PCIe", candidate("H200", 2));
  EXPECT_EQ(choice("H20").nearest, "NVIDIA H100 PCIe");
  EXPECT_EQ(choice("H100").nearest, "NVIDIA H200");
}

TEST_F(NearestDevice, IsNotAskedWhereTheDeviceHasARecord) {
  record("H200", candidate("H200", 3));
  record("H20", candidate("H20", 2));
  const KernelChoice chosen = choice("H20");
  EXPECT_EQ(chosen.config, candidate("H20", 2));
  EXPECT_TRUE(chosen.tuned);
  EXPECT_EQ(chosen.nearest, "");
}

TEST_F(NearestDevice, IsOfTheSameArchitecture) {
  record("H200", candidate("L40S", 1));
  const KernelChoice chosen = choice("L40S");
  EXPECT_EQ(chosen.config, candidate("L40S", 0));
  EXPECT_EQ(chosen.nearest, "");
}

TEST_F(NearestDevice, IsInTheExplanation) {
  record("H200", candidate("H200", 3));
  const auto config = parse_config(R"({"version": 1, "device": "H20", "ops": [{"name": "test", "op": "hstu_attention",
      "heads": 2, "attn_dim": 64, "hidden_dim": 64, "lengths": [5, 0, 90], "max_seq_len": [1024]}]})",
                                   "test", "");
  ASSERT_TRUE(config.ok());
  const OpSpec& spec = *config->instances[0].spec;
  TuningRecord record;
  record.key = tuning_key(spec, Direction::kForward, *known_device("H200"), kBucket);
  record.workload = "batch";
  record.timed = {{key_text(candidate("H200", 1)), "batch", "source", 10, 0.1}};
  ASSERT_TRUE(engine_->tuning().add(record).ok());
  const OperationResult result = explain(*engine_, *config, {});
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  const Json& row = result.report["instances"][0];
  EXPECT_EQ(row["tuned"], false);
  EXPECT_EQ(row["from"], "near device");
  EXPECT_EQ(row["nearest_device"], "NVIDIA H200");
}

}  // namespace
}  // namespace hstujit::test
