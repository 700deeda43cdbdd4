// Who lends workspaces: over the skeletons of tests/plan/fake_skeletons.cpp, whose tile of 128 rows asks for 100 bytes
// a row, zeroed where its schedule is "persistent", and is followed by a second kernel.
#include "operations/configs/operation.h"
#include "operations/tuning/data/adversarial_lengths.h"
#include "operations/tuning/timing/device_bench.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 135;  // of make_instance

class LendingTest : public RuntimeTest {
 protected:
  // Steps that were enqueued since the last call: names of kernels and, of fills of this many bytes, their byte.
  static std::vector<std::string> steps(size_t bytes) {
    std::vector<std::string> list;
    for (unsigned i = 0; i < fake().step_count; ++i) {
      const FakeStep& step = fake().steps[i];
      if (step.kernel[0] != '\0') list.emplace_back(step.kernel);
      if (step.kernel[0] == '\0' && step.bytes == bytes) list.push_back(std::to_string(step.byte));
    }
    fake().step_count = 0;
    return list;
  }
  static CompiledCandidate candidate(const std::string& schedule) {
    KernelConfig config;
    config.skeleton = "fake/usable";
    config.attention().block_m = 128;
    config.attention().schedule = schedule;
    return {config, cubin_of("a cubin")};
  }
};

TEST_F(LendingTest, AnOpSaysWhatItsLaunchNeeds) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  const auto op = make_op(engine);
  ASSERT_TRUE(op->prepare(256, -1).ok());
  Lengths lengths;
  lengths.rows = {5, 0, 130};
  lengths.max_seq_len = 200;
  FakeLaunch launch(make_instance(), lengths);
  const auto bytes = op->workspace_size(launch.values.data(), launch.values.size());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, static_cast<size_t>(kRows * 100));
  const Status status = op->launch(launch.values.data(), launch.values.size(), nullptr);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("workspace is a null pointer; fake_128 needs 13500 bytes"));
  EXPECT_EQ(fake().launches, 0);
  alignas(256) static char memory[kRows * 100];
  EXPECT_TRUE(op->launch(launch.values.data(), launch.values.size(), nullptr, {memory, sizeof(memory)}).ok());
  EXPECT_EQ(fake().launches, 2);
}

TEST_F(LendingTest, RunsLendPoison) {
  auto config = parse_config(R"({"version": 1, "ops": [{"name": "test", "op": "hstu_attention", "heads": 2,
      "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 256, "lengths": [5, 0, 130]}]})",
                             "test", "");
  ASSERT_TRUE(config.ok());
  const OperationResult result = run(make_engine(), *config, {});
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  constexpr int64_t kGuardRows = 3;
  EXPECT_THAT(steps((kRows + kGuardRows) * 100), ElementsAre("255", "fake_128", "fake_convert"));
}

TEST_F(LendingTest, EachOfRepeatedRunsHasPoison) {
  auto config = parse_config(R"({"version": 1, "ops": [{"name": "test", "op": "hstu_attention", "heads": 2,
      "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 256, "lengths": [5, 0, 130]}]})",
                             "test", "");
  ASSERT_TRUE(config.ok());
  OperationOptions options;
  options.repeats = 3;
  const OperationResult result = run(make_engine(), *config, options);
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  constexpr int64_t kGuardRows = 3;
  const std::vector<std::string> enqueued = steps((kRows + kGuardRows) * 100);
  // The first run; another allocation, poison as well; the second one. The fake driver keeps no more steps.
  ASSERT_GE(enqueued.size(), 7U);
  EXPECT_THAT(std::vector<std::string>(enqueued.begin(), enqueued.begin() + 7),
              ElementsAre("255", "fake_128", "fake_convert", "255", "255", "fake_128", "fake_convert"));
}

TEST_F(LendingTest, TuningChecksOverPoisonAndTimesAllThatALaunchEnqueues) {
  const auto engine = make_engine();
  const Instance instance = make_instance();
  const Lengths lengths = make_lengths(instance, 256);
  const auto made = DeviceBench::create(*engine->driver(), instance.spec, Direction::kForward, *known_device("sm_90a"),
                                        0, lengths, instance.alpha);
  ASSERT_TRUE(made.ok()) << made.status().message();
  DeviceBench& bench = **made;
  const auto grid = bench.load(candidate("grid")), persistent = bench.load(candidate("persistent"));
  ASSERT_TRUE(grid.ok() && persistent.ok());
  // The adversarial batch has more rows than this one, and some that are nobody's.
  const Lengths adversarial = adversarial_lengths(*instance.spec, Direction::kForward, 256, 20261120);
  const auto max = static_cast<size_t>((adversarial.total_rows() + 70) * 100);
  fake().step_count = 0;
  EXPECT_EQ(bench.validate(*grid).code(), Code::kCheckFailed) << "the fake GPU writes nothing";
  EXPECT_THAT(steps(max), ElementsAre("255", "fake_128", "fake_convert"));
  EXPECT_EQ(bench.validate(*persistent).code(), Code::kCheckFailed);
  EXPECT_THAT(steps(max), ElementsAre("255", "0", "fake_128", "fake_convert"));
  ASSERT_TRUE(bench.time({*persistent}, 1).ok());
  const std::vector<std::string> once = {"0", "fake_128", "fake_convert"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(steps(static_cast<size_t>(kRows * 100)), twice) << "once untimed, once timed";
}

}  // namespace
}  // namespace hstujit::test
