// One run of tune_problem, in three files: tuner.cpp from its begin to its end, and what befalls the bench;
// tuning_baseline.cpp how a candidate is admitted and which is the baseline; tuning_ranking.cpp how the others are
// timed against it.
#pragma once

#include <chrono>
#include <map>

#include "operations/tuning/tuner/compile_pool.h"
#include "operations/tuning/tuner/findings.h"
#include "operations/tuning/tuner/tuner.h"

namespace hstujit {

// The schedule of one run of tune_problem: what is tried when, and what a failure means. A Status of its functions is
// the end of the run without a result; a candidate's failure is a finding, and a bench that cannot be had again ends
// the trying (ended()), but not the run.
class TuningRun {
 public:
  TuningRun(Engine& engine, const BenchFactory& factory, const TuneProblem& problem, const TunerOptions& options,
            std::vector<Candidate> candidates)
      : engine_(engine),
        factory_(factory),
        problem_(problem),
        options_(options),
        candidates_(std::move(candidates)),
        findings_(engine, problem, candidates_[0].config, options),
        deadline_(start_ +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.budget_s))) {
    leave_out_slow();
  }

  Result<TuneReport> run();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kNotLoaded = -1;

  // A candidate that was validated.
  struct Entry {
    size_t index = 0;
    std::string source_digest;
    KernelBinary binary;
    int number = kNotLoaded;  // in the bench
    double ratio = 1;         // of its time to the baseline's
  };

  void leave_out_slow();
  bool is_known(const Candidate& candidate) const;
  double far_estimate(const Candidate& candidate) const;
  void take_far();
  Status try_from(size_t first);
  std::string config_text(size_t index) const { return key_text(candidates_[index].config); }
  bool ended() const { return !report_.ended_early.empty() || is_cancelled(); }
  bool is_cancelled() const { return options_.cancellation.requested(); }
  void end(std::string why);
  void begin(const PoolResult& result);
  void reject(size_t index, const std::string& source_digest, std::string reason, Status failure);
  Status fail(const Entry& entry, const Status& failure, std::string reason);
  Status replace_bench(const std::string& why);
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats);
  Result<std::optional<Entry>> admit(PoolResult result, bool whatever_resources);
  PoolResult wait_for(CompilePool& pool, size_t index);
  PoolResult produce(CompilePool& pool, size_t index, CompilePool::Effort effort);
  Status find_baseline(CompilePool& pool, size_t first);
  Status no_baseline() const;
  Status try_baseline(CompilePool& pool, PoolResult result);
  Status consider(PoolResult result);
  double best_ratio() const { return finalists_.empty() ? 1.0 : std::min(1.0, finalists_.front().ratio); }
  void rank(Entry entry);
  Status time_finalists();
  Status drop_finalist(std::vector<Entry>::iterator place, const Status& failure, std::string reason);
  void add_timing(const Entry& entry, const std::vector<double>& samples, const std::vector<double>& baseline_samples);
  Status keep_winner();
  std::optional<KernelConfig> usable(const RecordedConfig& winner) const;

  Engine& engine_;
  const BenchFactory& factory_;
  const TuneProblem& problem_;
  const TunerOptions& options_;
  std::vector<Candidate> candidates_;  // in the order of their estimates, but for far ones that are known
  std::vector<Candidate> far_;         // in that order; may never be tried
  double trusted_ms_ = 0;              // the estimate that they are far from
  Findings findings_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;
  std::unique_ptr<CandidateBench> bench_;
  std::map<size_t, PoolResult> waiting_;  // compiled before the baseline was found, by index
  std::optional<Entry> baseline_;
  Status last_failure_;  // of a candidate
  Status heuristic_failure_;
  std::vector<Entry> finalists_;  // best ratio first; the baseline is not among them
  int done_ = 0;
  int late_timeouts_ = 0;
  TuneReport report_;
};

}  // namespace hstujit
