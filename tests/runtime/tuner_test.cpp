// The tuner with times that the test makes up.
#include "runtime/tuning/tuner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/operations/operation.h"
#include "runtime/shipped_records.h"
#include "runtime/tuning/adversarial_lengths.h"
#include "runtime/tuning/device_bench.h"
#include "runtime/tuning/workload.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

// What benches run on. Time, validity and faults of a candidate follow from its config.
struct FakeDevice {
  std::function<Status(const KernelConfig&)> validity = [](const KernelConfig&) { return Status(); };
  std::function<double(const KernelConfig&)> duration = [](const KernelConfig&) { return 1.0; };
  // A factor of one of the repeats.
  std::function<double(const KernelConfig&, int repeat)> noise = [](const KernelConfig&, int) { return 1.0; };
  // What a launch leaves the bench in: of a validation, or of `repeats` timed ones.
  std::function<BenchState(const KernelConfig&, int repeats)> fate = [](const KernelConfig&, int) {
    return BenchState::kSound;
  };
  std::function<Status(int benches)> creation = [](int) { return Status(); };
  std::vector<KernelConfig> loaded;
  std::vector<std::pair<KernelConfig, int>> timed;  // with the repeats
  int benches = 0;
};

class FakeBench final : public CandidateBench {
 public:
  explicit FakeBench(FakeDevice& device) : device_(device) {}

  Result<int> load(const CompiledCandidate& candidate) override {
    if (state_ != BenchState::kSound) return lost();
    device_.loaded.push_back(candidate.config);
    mine_.push_back(candidate.config);
    return static_cast<int>(mine_.size()) - 1;
  }
  void unload(int) override {}
  Status validate(int number) override {
    const KernelConfig& config = mine_.at(static_cast<size_t>(number));
    HSTUJIT_RETURN_IF_ERROR(launch(config, 0));
    return device_.validity(config);
  }
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats) override {
    std::vector<std::vector<double>> samples;
    for (const int number : numbers) {
      const KernelConfig& config = mine_.at(static_cast<size_t>(number));
      culprit_ = number;
      HSTUJIT_RETURN_IF_ERROR(launch(config, repeats));
      device_.timed.emplace_back(config, repeats);
      samples.emplace_back();
      for (int i = 0; i < repeats; ++i) samples.back().push_back(device_.duration(config) * device_.noise(config, i));
    }
    return samples;
  }
  BenchState state() override { return state_; }
  int culprit() const override { return culprit_; }

 private:
  static Status lost() { return {Code::kDriverError, "an illegal address was accessed"}; }
  Status launch(const KernelConfig& config, int repeats) {
    if (state_ == BenchState::kSound) state_ = device_.fate(config, repeats);
    return state_ == BenchState::kSound ? Status() : lost();
  }

  FakeDevice& device_;
  std::vector<KernelConfig> mine_;
  BenchState state_ = BenchState::kSound;
  int culprit_ = 0;
};

class TunerTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    problem_ = {make_instance().spec, Direction::kForward, *known_device("sm_90a"), 1024, "batch"};
    space_ = search_space(*problem_.spec, problem_.direction, problem_.device, heuristic_size(1024)).candidates;
    ASSERT_GT(space_.size(), 3u);
    options_ = options_for_all();
    options_.jobs = 2;
  }
  // Whatever their estimates are.
  static TunerOptions options_for_all() {
    TunerOptions options;
    options.worst_estimate = std::numeric_limits<double>::infinity();
    return options;
  }
  Result<TuneReport> tune() {
    const BenchFactory factory = [this]() -> Result<std::unique_ptr<CandidateBench>> {
      HSTUJIT_RETURN_IF_ERROR(bench_.creation(bench_.benches++));
      return std::unique_ptr<CandidateBench>(std::make_unique<FakeBench>(bench_));
    };
    return tune_problem(*make_engine(), factory, problem_, options_);
  }
  // What is stored for the key.
  TuningRecord stored() {
    return make_engine()
        ->tuning()
        .find(tuning_key(*problem_.spec, problem_.direction, problem_.device, problem_.bucket))
        .value_or(TuningRecord{});
  }
  const UntimedCandidate* rejection(const TuningRecord& record, size_t index) const {
    for (const UntimedCandidate& candidate : record.rejected) {
      if (candidate.config == key_text(space_[index].config)) return &candidate;
    }
    return nullptr;
  }
  // One of the space breaks the bench.
  void breaks(size_t index, BenchState how = BenchState::kCrashed) {
    bench_.fate = [this, index, how](const KernelConfig& config, int) {
      return config == space_[index].config ? how : BenchState::kSound;
    };
  }

  FakeDevice bench_;
  TuneProblem problem_;
  TunerOptions options_;
  std::vector<Candidate> space_;
};

TEST_F(TunerTest, TheFastestWinsAndIsFoundAfterwards) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
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

TEST_F(TunerTest, ShippedRecordsAreTheLastThatALookupTries) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
  ASSERT_TRUE(tune().ok());
  records_ = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "user").string();
  const auto choose = [&] {
    const auto engine = make_engine();
    return *choose_kernel(*engine, *problem_.spec, problem_.direction, problem_.device, 1024);
  };
  EXPECT_TRUE(choose().tuned);
  EXPECT_EQ(choose().config, space_[2].config);
  const auto engine = make_engine();
  EXPECT_THAT(engine->kernels().store().directories().in_order(), ::testing::ElementsAre(values_["HSTUJIT_CACHE_DIR"]))
      << "they hold no cubins";
  EXPECT_EQ(doctor(*engine)["cache"].back()["path"], records_);
  EXPECT_EQ(doctor(*engine)["cache"].back()["role"], "shipped");
  records_ = (folder_->path() / "absent").string();
  EXPECT_FALSE(choose().tuned) << "a folder that is not there is no failure";
}

TEST_F(TunerTest, ARefusedWinnerHidesNoneOfALaterLayer) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
  ASSERT_TRUE(tune().ok());
  records_ = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "user").string();
  TuningRecord refused;
  refused.key = tuning_key(*problem_.spec, problem_.direction, problem_.device, 1024);
  refused.workload = "batch";
  refused.timed = {{R"({"skeleton": "of another library"})", "batch", "s", 1, 0}};
  TuningDatabase user(CacheDirectories{.user = values_["HSTUJIT_CACHE_DIR"], .read_only = {}}, Log());
  ASSERT_TRUE(user.add(refused).ok());
  const auto choice = choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024);
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->tuned);
  EXPECT_EQ(choice->config, space_[2].config);
}

TEST(ShippedRecords, AreFoundFromTheFolderOfTheLibrary) {
  const auto root = TempDir::create();
  ASSERT_TRUE(root.ok());
  const std::filesystem::path library = root->path() / "a" / "b" / "lib";
  std::filesystem::create_directories(library);
  EXPECT_EQ(shipped_records(library), "");
  std::filesystem::create_directories(library / kRecordsFromLibrary);
  EXPECT_EQ(shipped_records(library), std::filesystem::canonical(library / kRecordsFromLibrary));
  EXPECT_EQ(shipped_records(""), "");
  EXPECT_EQ(shipped_records(), "") << "a build tree has none";
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

TEST_F(TunerTest, AHopelessCandidateIsTimedOnce) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 2.1 : 1.0; };
  ASSERT_TRUE(tune().ok());
  std::vector<int> repeats;
  for (const auto& [config, count] : bench_.timed) {
    if (config == space_[2].config) repeats.push_back(count);
  }
  EXPECT_THAT(repeats, ::testing::ElementsAre(1));
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
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.1 : 1.0; };
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[2].config ? Status(Code::kCheckFailed, "out differs") : Status();
  };
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
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
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
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
  const auto again = tune();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->resumed, static_cast<int>(space_.size()) - 1) << "the first batch's times are still there";
  EXPECT_EQ(again->winner, space_[2].config) << "and are not compared with the small one's";
  EXPECT_EQ(choose(), space_[2].config);
}

TEST(WorkloadName, FollowsFromEveryLength) {
  const Lengths lengths{{5, 9}, {1, 2}, 16};
  EXPECT_THAT(workload_name(lengths), ::testing::StartsWith("b2-n16-r14-t3-"));
  EXPECT_EQ(workload_name(lengths), workload_name({{5, 9}, {1, 2}, 16}));
  for (const Lengths& other : {Lengths{{9, 5}, {1, 2}, 16}, Lengths{{5, 9}, {2, 1}, 16}, Lengths{{5, 9}, {}, 16},
                               Lengths{{5, 9}, {1, 2}, 17}, Lengths{{5, 9, 0}, {1, 2, 0}, 16}}) {
    EXPECT_NE(workload_name(other), workload_name(lengths));
  }
}

TEST_F(TunerTest, WithoutAHeuristicThatPassesTheNextOneIsTheBaseline) {
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[0].config ? Status(Code::kCheckFailed, "out differs") : Status();
  };
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
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
  compiler_->source_suffix = " // changed";
  options_.budget_s = 0;
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[1].config);
  EXPECT_EQ(report->timed, 1);
}

TEST_F(TunerTest, AnErrorWhenNoCandidatePasses) {
  bench_.validity = [](const KernelConfig&) { return Status(Code::kCheckFailed, "out differs"); };
  const auto report = tune();
  EXPECT_EQ(report.status().code(), Code::kCheckFailed);
  EXPECT_THAT(report.status().message(), HasSubstr("the heuristic's config"));
  EXPECT_EQ(stored().rejected.size(), space_.size()) << "and is known";
}

TEST_F(TunerTest, ACrashIsAFindingAndTuningGoesOnWithAnotherBench) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[3].config ? 0.5 : 1.0; };
  for (const auto& [state, reason] :
       {std::pair(BenchState::kCrashed, "crashed"), std::pair(BenchState::kTimedOut, "timeout")}) {
    compiler_->source_suffix += " // changed";
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
  bench_.duration = [&](const KernelConfig& config) { return config == space_[1].config ? 0.5 : 1.0; };
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
  compiler_->source_suffix = " // changed";
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
  compiler_->source_suffix = " // changed";
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

TEST_F(TunerTest, AResumedRunComparesByRatiosToTheBaseline) {
  // Half of the space in a run with a fast clock, the other half, with the better one, in a run with a slow one.
  const size_t best = 2;
  bench_.duration = [&](const KernelConfig& config) { return config == space_[1].config ? 0.90 : 1.0; };
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[best].config ? Status(Code::kDriverError, "busy") : Status();
  };
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
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[2].config ? Status(Code::kCheckFailed, "out differs") : Status();
  };
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

  compiler_->source_suffix = " // repaired";
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
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[2].config ? Status(Code::kDriverError, "busy") : Status();
  };
  ASSERT_TRUE(tune().ok());
  bench_.validity = [](const KernelConfig&) { return Status(); };
  const auto report = tune();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->record.rejected.empty());
}

TEST_F(TunerTest, AKernelJustProvenWrongDoesNotWinByItsOldTime) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.1 : 1.0; };
  ASSERT_EQ(tune()->winner, space_[2].config);
  compiler_->source_suffix = " // changed";
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[2].config ? Status(Code::kCheckFailed, "out differs") : Status();
  };
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[0].config);
  EXPECT_EQ(report->record.timing(key_text(space_[2].config)), nullptr);
  EXPECT_EQ(choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024)->config,
            space_[0].config);
}

TEST_F(TunerTest, TimesOfAnotherSourceDoNotCompete) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.1 : 1.0; };
  ASSERT_EQ(tune()->winner, space_[2].config);
  // It fails for the moment, so that its old time stays.
  compiler_->source_suffix = " // changed";
  bench_.validity = [&](const KernelConfig& config) {
    return config == space_[2].config ? Status(Code::kDriverError, "busy") : Status();
  };
  EXPECT_EQ(tune()->winner, space_[0].config);
  EXPECT_EQ(choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024)->config,
            space_[0].config);
  // The budget ends before it is reached.
  compiler_->source_suffix = " // changed again";
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[0].config);
  EXPECT_NE(report->record.timing(key_text(space_[2].config)), nullptr) << "another library may come back to it";
}

TEST_F(TunerTest, AShortRunKeepsTheWinnerOfALongOne) {
  bench_.duration = [&](const KernelConfig& config) { return config == space_[2].config ? 0.5 : 1.0; };
  ASSERT_EQ(tune()->winner, space_[2].config);
  options_.budget_s = 0;
  const auto report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[2].config);
  EXPECT_EQ(report->resumed, 1);
  compiler_->source_suffix = " // changed";
  EXPECT_EQ(tune()->winner, space_[0].config) << "nobody has run what it is now";
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

TEST(Compare, FindsWrongRowsMissingRowsAndWritesPastTheEnd) {
  const auto spec = parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}}, "");
  ASSERT_TRUE(spec.ok());
  Lengths lengths;
  lengths.rows = {40, 1, 9};
  lengths.max_seq_len = 40;
  const auto problem = make_problem_data(*spec, Direction::kForward, lengths, 1, 4);
  ASSERT_TRUE(problem.ok());
  const auto reference = reference_outputs(*problem);
  const size_t out = problem->signature.size() - 1;
  std::vector<std::vector<std::byte>> outputs(problem->signature.size());
  EXPECT_THAT(compare(*problem, reference, problem->images).sentence, HasSubstr("were not written"));
  outputs[out] = pack(reference[out].tensor, DataType::kBf16);
  outputs[out].resize(problem->images[out].size(), std::byte{kPoison});
  EXPECT_EQ(compare(*problem, reference, outputs).sentence, "");
  auto changed = outputs;
  changed[out].back() = std::byte{0};
  EXPECT_THAT(compare(*problem, reference, changed).sentence, HasSubstr("after the last sequence"));
  changed = outputs;
  for (size_t i = 40 * 32; i < 41 * 32; ++i) changed[out][i] = std::byte{0};
  EXPECT_FALSE(compare(*problem, reference, changed).good()) << "one wrong sequence of one row";
}

// Outputs of short sequences under a long max_seq_len lie among the subnormal numbers of fp16, where the nearest value
// is relatively far away.
TEST(Compare, ARoundedAnswerAgreesAlsoNearZero) {
  const auto spec =
      parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}, {"dtype", "fp16"}}, "");
  ASSERT_TRUE(spec.ok());
  const Lengths lengths{std::vector<int64_t>(64, 1), {}, 131072};
  const auto problem = make_problem_data(*spec, Direction::kForward, lengths, 1, 0);
  ASSERT_TRUE(problem.ok());
  const auto reference = reference_outputs(*problem);
  const size_t out = problem->signature.size() - 1;
  std::vector<std::vector<std::byte>> outputs(problem->signature.size());
  outputs[out] = pack(reference[out].tensor, DataType::kFp16);
  EXPECT_EQ(compare(*problem, reference, outputs).sentence, "");
  EXPECT_LE(compare(*problem, reference, outputs).error, (*spec)->error_bound(Direction::kForward));
  std::fill(outputs[out].begin(), outputs[out].end(), std::byte{0});
  EXPECT_FALSE(compare(*problem, reference, outputs).good()) << "0 is not near enough";
}

TEST(Compare, IntegersAreExact) {
  ProblemData problem;
  problem.spec = *parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}}, "");
  Argument counts;
  counts.name = "counts";
  counts.role = ArgumentRole::kOutput;
  counts.dtype = DataType::kInt32;
  counts.shape = {Dimension{"N"}};
  problem.signature = {counts};
  HostTensor expected;
  expected.shape = {3};
  expected.integers = {7, -1, 9};
  const std::vector<HostValue> reference = {{expected, 0}};
  EXPECT_EQ(compare(problem, reference, {pack(expected, DataType::kInt32)}).sentence, "");
  HostTensor wrong = expected;
  wrong.integers[2] = 8;
  EXPECT_EQ(compare(problem, reference, {pack(wrong, DataType::kInt32)}).sentence,
            "counts: element 2 is 8; the reference has 9");
}

}  // namespace
}  // namespace hstujit::test
