// The tuner with benches that the test makes up: what the tests of tuning share.
#pragma once

#include "operations/configs/operation.h"
#include "operations/tuning/tuner/tuner.h"
#include "tests/runtime/support.h"

namespace hstujit::test {

// Device that benches run on. Time, validity and faults of a candidate follow from its config.
struct FakeDevice {
  std::function<Status(const KernelConfig&)> validity = [](const KernelConfig&) { return Status(); };
  std::function<double(const KernelConfig&)> duration = [](const KernelConfig&) { return 1.0; };
  // A factor of one of the repeats.
  std::function<double(const KernelConfig&, int repeat)> noise = [](const KernelConfig&, int) { return 1.0; };
  // State in which a launch leaves the bench: of a validation, or of `repeats` timed ones.
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
    options.far_estimate = options.worst_estimate = std::numeric_limits<double>::infinity();
    return options;
  }
  Result<TuneReport> tune() {
    const BenchFactory factory = [this]() -> Result<std::unique_ptr<CandidateBench>> {
      HSTUJIT_RETURN_IF_ERROR(bench_.creation(bench_.benches++));
      return std::unique_ptr<CandidateBench>(std::make_unique<FakeBench>(bench_));
    };
    return tune_problem(*make_engine(), factory, problem_, options_);
  }
  // Record that is stored for the key.
  TuningRecord stored() {
    return make_engine()
        ->tuning()
        .find(tuning_key(*problem_.spec, problem_.direction, problem_.device, problem_.bucket))
        .value_or(TuningRecord{});
  }
  const TuningRejection* rejection(const TuningRecord& record, size_t index) const {
    for (const TuningRejection& candidate : record.rejected) {
      if (candidate.config == key_text(space_[index].config)) return &candidate;
    }
    return nullptr;
  }
  // Only this one of the space fails its validation.
  void fails(size_t index, const Status& status) {
    bench_.validity = [this, index, status](const KernelConfig& config) {
      return config == space_[index].config ? status : Status();
    };
  }
  // This one of the space takes `milliseconds`, the others 1.
  void takes(size_t index, double milliseconds) {
    bench_.duration = [this, index, milliseconds](const KernelConfig& config) {
      return config == space_[index].config ? milliseconds : 1.0;
    };
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

}  // namespace hstujit::test
