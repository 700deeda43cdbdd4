// The tuner: times the search space of one key and writes what it found to the tuning database.
//
// Candidates come in the cost model's order. A pool of threads compiles them while this thread validates and times
// those that are done. Each is timed alternately with the baseline, and what counts is the ratio: twice, then, unless
// that was hopeless, a few times; the best few and the baseline meet once more at the end, with more repeats. The
// baseline is the first candidate that passes validation: the heuristic's config, unless that is rejected.
//
// The winner is a config whose time, of this run or an earlier one, is of the source that would run today. A candidate
// that the budget left out has no such time, unless it is the earlier winner, whose source is always looked at.
//
// Findings are stored while the run goes on (findings.h). A candidate that breaks the bench is rejected for good, as
// "crashed" or "timeout"; the factory then makes another bench and tuning goes on. When it cannot, or did so too often,
// tuning ends there: the report says why, and its winner is the best of what was validated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune_cache/records/tuning_record.h"
#include "compiler/plan/search_space.h"
#include "operations/tuning/timing/candidate_bench.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/engine/cancellation.h"
#include "runtime/engine/engine.h"

namespace hstujit {

struct TuneProblem {
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  DeviceSpec device;
  ProblemBucket bucket = 0;
  std::string workload;  // workload_name of what the bench times
  Restriction restriction = {};
  int64_t rows = 0;  // of the workload, where launches say no length
};

struct TunerOptions {
  double budget_s = 30;         // no compile begins after that, once there is a baseline
  int jobs = 0;                 // compile threads; 0, and at most: HSTUJIT_COMPILE_JOBS
  double compile_limit_s = 60;  // a worker process whose compile takes longer is killed
  int late_timeouts = 3;  // compiles that began after the budget, because there was no baseline, and took that long
  // Candidates that the cost model takes for slower than its best by more than far_estimate are tried only where the
  // best of the others is itself slower by more than half of that, as then the model is wrong about this device or
  // problem: those that are slower than that one by no more than far_estimate, and so on. By more than worst_estimate,
  // they are not tried at all. Without a value it is the skeleton's estimate_error(). On the H200 winners of attention
  // were at most 1.24 (12 keys with all candidates), 1.17 with today's model (24 keys with those up to 2). What an
  // earlier run timed is always among those it competes with.
  std::optional<double> far_estimate;
  double worst_estimate = 2.0;
  int first_repeats = 2;   // of each candidate, alternately with the baseline
  double hopeless = 2.0;   // slower than the best by this factor in each of those: not timed again
  int quick_repeats = 5;   // of the others
  int final_repeats = 25;  // of the finalists
  int finalists = 4;
  double no_finalist = 1.5;     // slower than the best by this factor after the quick repeats
  int bench_restarts = 8;       // after candidates that broke the bench; one more ends the tuning
  int checkpoint_findings = 8;  // findings are stored when there are so many new ones
  double checkpoint_s = 2;      // and so long after the last time
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
  Cancellation cancellation;  // once requested, nothing that happens counts as a finding
};

struct TuneReport {
  TuningRecord record;  // merged with what was known before; its workload and winner are this run's
  KernelConfig winner;
  // The winner of an earlier run on so many more rows, which launches go on taking (tuning_record.h).
  struct Staying {
    KernelConfig winner;
    int64_t rows = 0;
  };
  std::optional<Staying> staying;
  KernelConfig heuristic;
  double winner_us = 0;
  double winner_spread_us = 0;
  double heuristic_us = 0;  // 0 when it was rejected
  int candidates = 0;       // that were to be tried
  int left_out = 0;         // others of the search space, by their estimates
  int timed = 0;            // in this run
  int resumed = 0;          // timed by an earlier run, of the same source on the same workload
  int skipped = 0;          // the budget, or the tuning, ended first
  int restarts = 0;         // of the bench
  std::string ended_early;  // why tuning ended before its time: a sentence; empty when it did not
  double seconds = 0;
};

// kCancelled: the caller cancelled; findings from before are stored. kUnsupported: no candidate. The heuristic's
// failure, with its code: no candidate passed. kNoCompiler, kNoDriver and the like: nothing could be timed. A
// candidate's failure is its rejection in the record.
Result<TuneReport> tune_problem(Engine& engine, const BenchFactory& factory, const TuneProblem& problem,
                                const TunerOptions& options);

}  // namespace hstujit
