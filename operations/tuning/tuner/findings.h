// Knowledge of one run of the tuner: findings of earlier runs, its own, and which of them are stored.
//
// Findings are stored while the run goes on, so that one that is killed loses the last few only and the next run goes
// on where it ended. Nothing is written about a candidate before it has run.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "autotune_cache/records/tuning_record.h"
#include "operations/tuning/tuner/tuner.h"
#include "runtime/engine/engine.h"

namespace hstujit {

class Findings {
 public:
  Findings(Engine& engine, const TuneProblem& problem, const KernelConfig& heuristic, const TunerOptions& options);

  // Record that earlier runs stored for the key; null when there is none.
  const TuningRecord* earlier() const { return earlier_ ? &*earlier_ : nullptr; }

  // The source of a config, and of its compiler, as of today: only times of these sources compete.
  void saw_source(const KernelConfig& config, const std::string& digest) { sources_[key_text(config)] = digest; }
  void saw_nvrtc(const std::string& version) { record_.environment["nvrtc"] = version; }

  // A newer finding about a config takes the place of this run's earlier one.
  void add_timing(TimedCandidate timing);
  void add_rejection(TuningRejection rejection);

  // Stores when there is enough that is new: TunerOptions::checkpoint_findings and checkpoint_s.
  Status checkpoint();

  // Stores everything. The record with what was known before; its workload and winner are this run's. The winner is
  // empty as long as no time is of today's sources.
  Result<TuningRecord> store();
  // The stored record, where another workload than this run's goes on deciding; null: this run does.
  const TuningRecord* staying() const { return staying_ ? &*staying_ : nullptr; }
  // Stores with as many rows as that has, so that this run decides: for a winner that cannot run.
  Result<TuningRecord> take_over();

 private:
  using Clock = std::chrono::steady_clock;

  Engine& engine_;
  TunerOptions options_;
  std::optional<TuningRecord> earlier_;
  TuningRecord record_;  // of this run alone
  std::optional<TuningRecord> staying_;
  std::map<RecordedConfig, std::string> sources_;  // digests
  int unstored_ = 0;
  Clock::time_point stored_at_ = Clock::now();
  Clock::duration store_time_{};  // that the last one took
};

}  // namespace hstujit
