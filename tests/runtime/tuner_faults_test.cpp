// Candidates that break their bench, and runs that end early: what is known afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "operations/tuning/timing/device_bench.h"
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

TEST_F(TunerTest, ACrashIsAFindingAndTuningGoesOnWithAnotherBench) {
  takes(3, 0.5);
  for (const auto& [state, reason] :
       {std::pair(BenchState::kCrashed, "crashed"), std::pair(BenchState::kTimedOut, "timeout")}) {
    compiler_->source_suffix += " changed";
    breaks(2, state);
    bench_.benches = 0;
    auto report = tune();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(bench_.benches, 2);
    EXPECT_EQ(report->restarts, 1);
    EXPECT_EQ(report->ended_early, "");
    EXPECT_EQ(report->timed, static_cast<int>(space_.size()) - 1);
    EXPECT_EQ(report->winner, space_[3].config);
    ASSERT_NE(rejection(report->record, 2), nullptr);
    EXPECT_EQ(rejection(report->record, 2)->reason, reason);
    EXPECT_THAT(rejection(report->record, 2)->detail, HasSubstr("illegal address"));
    bench_.benches = 0;
    ASSERT_TRUE(tune().ok());
    EXPECT_EQ(bench_.benches, 1) << "it is not run again";
  }
}

TEST_F(TunerTest, ACrashingHeuristicIsNoBaseline) {
  breaks(0);
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(rejection(report->record, 0)->reason, "crashed");
  EXPECT_EQ(report->timed, static_cast<int>(space_.size()) - 1);
}

TEST_F(TunerTest, WithoutAnotherBenchTheBestOfWhatWasValidatedWins) {
  options_.jobs = 1;
  takes(1, 0.5);
  breaks(2);
  bench_.creation = [](int benches) {
    return benches == 0 ? Status() : Status(Code::kDriverError, "the context is gone");
  };
  auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_THAT(report->ended_early, HasSubstr("the context is gone"));
  EXPECT_EQ(report->skipped, static_cast<int>(space_.size()) - 3);
  EXPECT_EQ(stored().rejected.size(), 1u);
  // The next run goes on behind it.
  bench_.benches = 0;
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->ended_early, "");
  EXPECT_EQ(report->timed, static_cast<int>(space_.size()) - 2) << "all but the rejected one and the one known";

  breaks(0);
  compiler_->source_suffix = " changed";
  bench_.benches = 0;
  report = tune();
  EXPECT_EQ(report.status().code(), Code::kDriverError) << "nothing was validated";
  EXPECT_THAT(report.status().message(), HasSubstr("the context is gone"));
}

TEST_F(TunerTest, TooManyCrashesEndTheTuning) {
  options_.bench_restarts = 2;
  bench_.fate = [&](const KernelConfig& config, int) {
    return config == space_[0].config ? BenchState::kSound : BenchState::kCrashed;
  };
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[0].config);
  EXPECT_EQ(report->restarts, 2);
  EXPECT_THAT(report->ended_early, HasSubstr("bench_restarts is 2"));
  EXPECT_EQ(report->record.rejected.size(), 3u);
}

TEST_F(TunerTest, ACrashAmongTheFinalistsIsFoundOut) {
  bench_.duration = [&](const KernelConfig& config) {
    return config == space_[2].config ? 0.4 : config == space_[1].config ? 0.5 : 1.0;
  };
  bench_.fate = [&](const KernelConfig& config, int repeats) {
    return config == space_[2].config && repeats == options_.final_repeats ? BenchState::kCrashed : BenchState::kSound;
  };
  // Whether or not the others can be timed once more.
  bench_.creation = [](int benches) { return benches == 1 ? Status(Code::kDriverError, "gone") : Status(); };
  auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_THAT(report->ended_early, HasSubstr("gone"));
  compiler_->source_suffix = " changed";
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->ended_early, "");
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_EQ(rejection(report->record, 2)->reason, "crashed");
  EXPECT_EQ(report->record.timing(key_text(space_[2].config)), nullptr) << "its quick time has ended";
  const auto finals = [&](size_t index) {
    return std::count(bench_.timed.begin(), bench_.timed.end(),
                      std::pair(space_[index].config, options_.final_repeats));
  };
  EXPECT_GE(finals(1), 1);
}

TEST_F(TunerTest, AKilledRunKeepsWhatItHasFound) {
  options_.checkpoint_findings = 1;
  options_.checkpoint_s = 0;
  options_.jobs = 1;
  const size_t deadly = 12;
  ASSERT_GT(space_.size(), deadly + 1);
  const pid_t child = ::fork();
  if (child == 0) {
    bench_.fate = [&](const KernelConfig& config, int) {
      if (config == space_[deadly].config) ::kill(::getpid(), SIGKILL);
      return BenchState::kSound;
    };
    const auto report = tune();
    ::_exit(report.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  options_ = options_for_all();
  EXPECT_EQ(stored().timed.size(), deadly);
  EXPECT_EQ(rejection(stored(), deadly), nullptr) << "nobody knows that it was this one";
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (size_t i = 1; i < deadly; ++i) {
    EXPECT_THAT(bench_.loaded, ::testing::Not(::testing::Contains(space_[i].config))) << i;
  }
  EXPECT_EQ(report->resumed, static_cast<int>(deadly) - 1);
  EXPECT_EQ(report->timed, static_cast<int>(space_.size() - deadly) + 1);
}

TEST_F(TunerTest, EverythingIsStoredBeforeTheFinals) {
  int finals = 0;
  bench_.fate = [&](const KernelConfig&, int repeats) {
    if (repeats == options_.final_repeats) {
      EXPECT_EQ(stored().timed.size(), space_.size());
      ++finals;
    }
    return BenchState::kSound;
  };
  ASSERT_TRUE(tune().ok());
  EXPECT_GT(finals, 0);
}

TEST_F(RuntimeTest, ADeviceBenchKnowsWhetherItsContextDied) {
  const auto engine = make_engine();
  const Instance instance = make_instance();
  const DeviceSpec device = *known_device("sm_90a");
  const auto bench = DeviceBench::create(*engine->driver(), instance.spec, Direction::kForward, device, 0,
                                         make_lengths(instance, 128), instance.alpha);
  ASSERT_TRUE(bench.ok()) << bench.status().message();
  EXPECT_EQ((*bench)->state(), BenchState::kSound);
  fake().failing = "cuStreamSynchronize";
  EXPECT_EQ((*bench)->state(), BenchState::kCrashed);
  fake().failing = nullptr;
}

}  // namespace
}  // namespace hstujit::test
