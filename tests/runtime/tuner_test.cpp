// Choices of the tuner, with times that the test makes up.
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

TEST_F(TunerTest, TheFastestWinsAndIsFoundAfterwards) {
  takes(2, 0.5);
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[2].config);
  EXPECT_EQ(report->heuristic, space_[0].config);
  EXPECT_EQ(report->timed, static_cast<int>(space_.size()));
  const auto choice = choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024);
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->tuned);
  EXPECT_EQ(choice->config, space_[2].config);
}

TEST_F(TunerTest, TheHeuristicStaysWithinNoise) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.995 : 1.0; };
  bench_.noise = [&](const KernelConfig& config, int repeat) {
    return config == space_[2].config ? 1 + 0.02 * (repeat % 3 - 1) : 1.0;
  };
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->winner, space_[0].config);
}

TEST_F(TunerTest, AClockThatDriftsIsNoNoise) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.995 : 1.0; };
  bench_.noise = [](const KernelConfig&, int repeat) { return 1 + 0.02 * repeat; };
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->winner, space_[2].config);
}

TEST_F(TunerTest, CandidatesThatAreExpectedToBeSlowAreLeftOut) {
  options_.worst_estimate = 1.2;
  size_t slow = 0;
  while (space_[slow].estimate_ms <= space_[0].estimate_ms * 1.2) ++slow;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->timed, static_cast<int>(slow));
  EXPECT_EQ(report->candidates, static_cast<int>(slow));
  EXPECT_EQ(report->left_out, static_cast<int>(space_.size() - slow));
}

TEST_F(TunerTest, AnEarlierWinnerIsTriedWhateverItsEstimateIs) {
  const KernelConfig last = space_.back().config;
  ASSERT_GT(space_.back().estimate_ms, space_[0].estimate_ms * 1.2);
  bench_.duration = [&](const KernelConfig& config) { return config == last ? 0.5 : 1.0; };
  ASSERT_TRUE(tune().ok());
  options_.worst_estimate = 1.2;
  problem_.workload = "another batch";
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, last);
}

TEST_F(TunerTest, AHopelessCandidateIsTimedTwice) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 2.1 : 1.0; };
  ASSERT_TRUE(tune().ok());
  std::vector<int> repeats;
  for (const auto& [config, count] : bench_.timed) {
    if (config == space_[2].config) repeats.push_back(count);
  }
  EXPECT_THAT(repeats, ::testing::ElementsAre(2));
}

TEST_F(TunerTest, OneLaunchThatWasDelayedIsNotHopeless) {
  takes(2, 0.9);
  bench_.noise = [&](const KernelConfig& config, int repeat) {
    return config == space_[2].config && repeat == 0 ? 10.0 : 1.0;
  };
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->winner, space_[2].config);
}

TEST(WithoutDrift, LeavesWhatKeepsCandidatesApart) {
  // The second takes twice as long; the clock halves its speed in the last repeat.
  const auto same = without_drift({{1, 1, 2}, {2, 2, 4}});
  EXPECT_THAT(same,
              ::testing::ElementsAre(::testing::Each(::testing::DoubleEq(1)), ::testing::Each(::testing::DoubleEq(2))));
  EXPECT_GT(summarise(without_drift({{1, 1, 1, 1}, {1.9, 2.1, 1.9, 2.1}})[1]).spread, 0.01);
  EXPECT_THAT(without_drift({{3, 1, 2}}), ::testing::ElementsAre(::testing::ElementsAre(3, 1, 2)));
}

TEST_F(TunerTest, AWrongFastOneIsRejectedAndNamed) {
  takes(2, 0.1);
  fails(2, {Code::kCheckFailed, "out differs"});
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->winner, space_[0].config);
  ASSERT_EQ(report->record.rejected.size(), 1u);
  EXPECT_EQ(report->record.rejected[0].reason, "wrong_result");
  EXPECT_EQ(report->record.rejected[0].detail, "out differs");
}

TEST_F(TunerTest, TheBudgetEndsCompilingButTheHeuristicIsTimed) {
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->timed, 1);
  EXPECT_EQ(report->skipped, static_cast<int>(space_.size()) - 1);
  EXPECT_EQ(report->winner, space_[0].config);
}

TEST_F(TunerTest, ASecondRunKeepsTheFirstOnesTimes) {
  ASSERT_TRUE(tune().ok());
  const int compiles = compiler_->compiles;
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->resumed, static_cast<int>(space_.size()) - 1);
  EXPECT_EQ(compiler_->compiles, compiles) << "the heuristic's cubin is in the cache";
}

TEST_F(TunerTest, AnotherWorkloadIsTimedAnewAndItsWinnerIsTheKeys) {
  takes(2, 0.5);
  ASSERT_TRUE(tune().ok());
  // A batch of a tenth: every time is below those of the first, and another config is the fastest.
  problem_.workload = "small batch";
  bench_.duration = [&](const KernelConfig& config) { return config == space_[1].config ? 0.05 : 0.1; };
  const auto other = tune();
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->resumed, 0);
  EXPECT_EQ(other->timed, static_cast<int>(space_.size()));
  EXPECT_EQ(other->winner, space_[1].config);
  EXPECT_LT(other->winner_us, 100);
  const auto choose = [&] {
    return choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024)->config;
  };
  EXPECT_EQ(choose(), space_[1].config) << "whatever the launch will be";

  problem_.workload = "batch";
  takes(2, 0.5);
  const auto again = tune();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->resumed, static_cast<int>(space_.size()) - 1) << "the first batch's times are still there";
  EXPECT_EQ(again->winner, space_[2].config) << "and are not compared with the small one's";
  EXPECT_EQ(choose(), space_[2].config);
}

TEST_F(TunerTest, AWorkloadOfFewRowsLeavesTheWinnerOfMany) {
  problem_.rows = 1000;
  takes(2, 0.5);
  ASSERT_TRUE(tune().ok());
  problem_.workload = "small";
  problem_.rows = 10;
  takes(1, 0.5);
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[1].config) << "of this run, which tells what it found";
  EXPECT_EQ(report->record.workload, "small");
  ASSERT_TRUE(report->staying.has_value());
  EXPECT_EQ(report->staying->winner, space_[2].config);
  EXPECT_EQ(report->staying->rows, 1000);
  EXPECT_EQ(stored().winner, key_text(space_[2].config));
  problem_.workload = "half";
  problem_.rows = 500;
  const auto half = tune();
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_FALSE(half->staying.has_value());
  EXPECT_EQ(stored().winner, key_text(space_[1].config));
}

// As of a library that has a skeleton more.
TEST_F(TunerTest, AWinnerThatCannotRunDoesNotStay) {
  problem_.rows = 1000;
  ASSERT_TRUE(tune().ok());
  TuningRecord other = stored();
  other.timed.front().config = R"({"skeleton":"attention/sm999"})";
  other.timed.front().median_us = 0.1;
  other.winner = other.timed.front().config;
  ASSERT_TRUE(make_engine()->tuning().add(other).ok());
  ASSERT_EQ(stored().winner, other.winner);
  problem_.workload = "small";
  problem_.rows = 10;
  takes(1, 0.5);
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->staying.has_value());
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_EQ(stored().winner, key_text(space_[1].config));
  EXPECT_EQ(stored().rows, 1000) << "so that the next few rows do not decide over many";
}

TEST_F(TunerTest, WithoutAHeuristicThatPassesTheNextOneIsTheBaseline) {
  fails(0, {Code::kCheckFailed, "out differs"});
  takes(2, 0.5);
  auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[2].config);
  EXPECT_EQ(report->heuristic, space_[0].config);
  EXPECT_EQ(report->heuristic_us, 0);
  ASSERT_NE(rejection(report->record, 0), nullptr);
  EXPECT_EQ(rejection(report->record, 0)->reason, "wrong_result");
  EXPECT_EQ(report->record.timing(key_text(space_[2].config))->baseline.config, key_text(space_[1].config));

  // Known to be wrong, it is not run again; what is known is not timed again, but for the baseline.
  bench_.loaded.clear();
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(bench_.loaded, std::vector<KernelConfig>{space_[1].config});
  EXPECT_EQ(report->winner, space_[2].config);
  // And when nothing else was compiled in time, one is.
  bench_.loaded.clear();
  compiler_->source_suffix = " changed";
  options_.budget_s = 0;
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_EQ(report->timed, 1);
}

TEST_F(TunerTest, ACommentInTheSourceLeavesWhatIsKnown) {
  ASSERT_TRUE(tune().ok());
  bench_.loaded.clear();
  compiler_->source_suffix = "  // a comment\n\n";
  ASSERT_TRUE(tune().ok());
  EXPECT_EQ(bench_.loaded, std::vector<KernelConfig>{space_[0].config}) << "the baseline alone";
}

TEST_F(TunerTest, AnErrorWhenNoCandidatePasses) {
  bench_.validity = [](const KernelConfig&) { return Status(Code::kCheckFailed, "out differs"); };
  const auto report = tune();
  EXPECT_EQ(report.status().code(), Code::kCheckFailed);
  EXPECT_THAT(report.status().message(), HasSubstr("the heuristic's config"));
  EXPECT_EQ(stored().rejected.size(), space_.size()) << "and is known";
}

TEST_F(TunerTest, AResumedRunComparesByRatiosToTheBaseline) {
  // Half of the space in a run with a fast clock, the other half, with the better one, in a run with a slow one.
  const size_t best = 2;
  takes(1, 0.90);
  fails(best, {Code::kDriverError, "busy"});
  ASSERT_EQ(tune()->winner, space_[1].config);
  bench_.validity = [](const KernelConfig&) { return Status(); };
  bench_.duration = [&](const KernelConfig& config) { return config == space_[best].config ? 0.88 * 1.05 : 1.05; };
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->timed, 2);
  EXPECT_EQ(report->winner, space_[best].config) << "0.88 of the baseline, the other 0.90, whatever the microseconds";
}

TEST_F(TunerTest, SpillsAndFailedCompilesAreRejected) {
  compiler_->resources = R"({"spill_store_bytes": 16})";
  auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->timed, 1) << "the heuristic's alone: there must be something to run";
  ASSERT_EQ(report->record.rejected.size(), space_.size() - 1);
  EXPECT_EQ(report->record.rejected[0].reason, "spill");
}

TEST_F(TunerTest, ARejectedCandidateIsTriedAgainOnlyWhenItsSourceChanged) {
  fails(2, {Code::kCheckFailed, "out differs"});
  ASSERT_TRUE(tune().ok());
  const int compiles = compiler_->compiles;
  const auto tries = [&] { return std::count(bench_.loaded.begin(), bench_.loaded.end(), space_[2].config); };
  ASSERT_EQ(tries(), 1);
  auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(tries(), 1) << "it is not run again";
  EXPECT_EQ(compiler_->compiles, compiles) << "nor compiled";
  EXPECT_EQ(report->resumed, static_cast<int>(space_.size()) - 2);
  ASSERT_EQ(report->record.rejected.size(), 1u);
  EXPECT_EQ(report->record.rejected[0].reason, "wrong_result");

  compiler_->source_suffix = " repaired";
  bench_.validity = [](const KernelConfig&) { return Status(); };
  report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(tries(), 2);
  EXPECT_TRUE(report->record.rejected.empty());
}

TEST_F(TunerTest, SpillsAndFailedCompilesAreNotCompiledAgain) {
  compiler_->resources = R"({"spill_store_bytes": 16})";
  ASSERT_TRUE(tune().ok());
  const int compiles = compiler_->compiles;
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(compiler_->compiles, compiles);
  EXPECT_EQ(report->record.rejected.size(), space_.size() - 1);
}

TEST_F(TunerTest, AnotherNvrtcMaySpillNoMore) {
  compiler_->resources = R"({"spill_store_bytes": 16})";
  ASSERT_TRUE(tune().ok());
  compiler_->resources = "{}";
  compiler_->nvrtc_version = "13.1";
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->record.rejected.empty());
}

TEST_F(TunerTest, WhatFailedForTheMomentIsTriedAgain) {
  fails(2, {Code::kDriverError, "busy"});
  ASSERT_TRUE(tune().ok());
  bench_.validity = [](const KernelConfig&) { return Status(); };
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->record.rejected.empty());
}

TEST_F(TunerTest, AKernelJustProvenWrongDoesNotWinByItsOldTime) {
  takes(2, 0.1);
  ASSERT_EQ(tune()->winner, space_[2].config);
  compiler_->source_suffix = " changed";
  fails(2, {Code::kCheckFailed, "out differs"});
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[0].config);
  EXPECT_EQ(report->record.timing(key_text(space_[2].config)), nullptr);
  EXPECT_EQ(choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024)->config,
            space_[0].config);
}

TEST_F(TunerTest, TimesOfAnotherSourceDoNotCompete) {
  takes(2, 0.1);
  ASSERT_EQ(tune()->winner, space_[2].config);
  // It fails for the moment, so that its old time stays.
  compiler_->source_suffix = " changed";
  fails(2, {Code::kDriverError, "busy"});
  EXPECT_EQ(tune()->winner, space_[0].config);
  EXPECT_EQ(choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024)->config,
            space_[0].config);
  // The budget ends before it is reached.
  compiler_->source_suffix = " changed again";
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[0].config);
  EXPECT_NE(report->record.timing(key_text(space_[2].config)), nullptr) << "another library may come back to it";
}

TEST_F(TunerTest, AShortRunKeepsTheWinnerOfALongOne) {
  takes(2, 0.5);
  ASSERT_EQ(tune()->winner, space_[2].config);
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[2].config);
  EXPECT_EQ(report->resumed, 1);
  compiler_->source_suffix = " changed";
  EXPECT_EQ(tune()->winner, space_[0].config) << "nobody has run what it is now";
}

}  // namespace
}  // namespace hstujit::test
