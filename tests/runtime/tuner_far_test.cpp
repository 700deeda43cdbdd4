// Candidates that the cost model takes for slow: when the tuner tries them.
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

class FarCandidatesTest : public TunerTest {
 protected:
  void SetUp() override {
    TunerTest::SetUp();
    options_.far_estimate = 1.2;
    near_ = count_within(1.2);
    ASSERT_LT(count_within(1.1), near_);
    ASSERT_LT(near_, space_.size());
  }
  size_t count_within(double factor, size_t of = 0) const {
    return static_cast<size_t>(std::ranges::count_if(
        space_, [&](const Candidate& candidate) { return candidate.estimate_ms <= space_[of].estimate_ms * factor; }));
  }
  void expect_tried(size_t count) {
    const auto report = tune();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->candidates, static_cast<int>(count));
    EXPECT_EQ(report->left_out, static_cast<int>(space_.size() - count));
    EXPECT_EQ(report->skipped, 0);
  }

  size_t near_ = 0;
};

TEST_F(FarCandidatesTest, AreLeftOutWhereTheModelIsRight) {
  expect_tried(near_);
  EXPECT_EQ(bench_.loaded.size(), near_);
}

TEST_F(FarCandidatesTest, AreTriedWhereTheBestIsNotWhatTheModelTookForFast) {
  const size_t wider = count_within(1.2, near_ - 1);
  ASSERT_GT(wider, near_);
  ASSERT_LT(wider, space_.size());
  takes(near_ - 1, 0.5);
  expect_tried(wider);
  EXPECT_EQ(bench_.loaded.size(), wider);
  // Nothing is compiled or timed anew but the heuristic's config, and the earlier winner says the same of the model.
  bench_.loaded.clear();
  expect_tried(wider);
  EXPECT_EQ(bench_.loaded.size(), 1u);
}

TEST_F(FarCandidatesTest, AreTriedFurtherWhereTheBestOfThemIsAmongTheLast) {
  const size_t wider = count_within(1.2, near_ - 1);
  bench_.duration = [this, wider](const KernelConfig& config) {
    return config == space_[wider - 1].config ? 0.5 : config == space_[near_ - 1].config ? 0.8 : 1.0;
  };
  const size_t widest = count_within(1.2, wider - 1);
  ASSERT_GT(widest, wider);
  expect_tried(widest);
}

TEST_F(FarCandidatesTest, ATimeOfOneCompetesWhenItsWorkloadIsTunedAgain) {
  const auto far_estimate = std::exchange(options_.far_estimate, std::numeric_limits<double>::infinity());
  takes(space_.size() - 1, 0.5);
  ASSERT_TRUE(tune().ok());
  options_.far_estimate = far_estimate;
  problem_.workload = "another batch";
  takes(1, 0.5);
  ASSERT_TRUE(tune().ok());
  problem_.workload = "batch";
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_.back().config);
}

TEST_F(FarCandidatesTest, AreTriedWhereNoOtherPasses) {
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[near_].config ? Status() : Status(Code::kCheckFailed, "out differs");
  };
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[near_].config);
  EXPECT_EQ(report->left_out, 0);
}

TEST_F(FarCandidatesTest, WaitForAnotherRunWhereTheBudgetHasEnded) {
  takes(near_ - 1, 0.5);
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->candidates, static_cast<int>(near_));
  EXPECT_EQ(report->skipped, static_cast<int>(near_) - 1);
}

}  // namespace
}  // namespace hstujit::test
