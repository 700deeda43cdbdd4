// The tuner: times the search space of one key and writes what it found to the tuning database.
//
// Candidates come in the cost model's order. A pool of threads compiles them while this thread validates and times
// those that are done. Each is timed in turns with the heuristic's config, and what counts is the ratio; the best few
// and the heuristic meet once more at the end, with more repeats.
//
// The winner is a config whose time, of this run or an earlier one, is of the source that would run today. A candidate
// that the budget left out has no such time, unless it is the earlier winner, whose source is always looked at.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune_cache/tuning_record.h"
#include "runtime/engine.h"
#include "runtime/tuning/candidate_bench.h"

namespace hstujit {

struct TuneProblem {
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  DeviceSpec device;
  int64_t bucket = 0;
  std::string workload;  // workload_name of what the bench times
};

struct TunerOptions {
  double budget_s = 30;    // no compile begins after that
  int jobs = 0;            // compile threads; 0: one per core
  int quick_repeats = 5;   // of each candidate, in turns with the heuristic's
  int final_repeats = 25;  // of the finalists
  int finalists = 4;
  double hopeless = 1.5;  // slower than the best by this factor after the quick repeats: no finalist
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

struct TuneReport {
  TuningRecord record;  // merged with what was known before; its workload and winner are this run's
  KernelConfig winner;
  KernelConfig heuristic;
  double winner_us = 0;
  double winner_spread_us = 0;
  double heuristic_us = 0;
  int candidates = 0;  // of the search space
  int timed = 0;       // in this run
  int resumed = 0;     // timed by an earlier run, of the same source on the same workload
  int skipped = 0;     // the budget ended first
  double seconds = 0;
};

// kUnsupported: no candidate. kNoCompiler, kNoDriver and the like: nothing could be timed. A candidate's failure is its
// rejection in the record.
Result<TuneReport> tune_problem(Engine& engine, CandidateBench& bench, const TuneProblem& problem,
                                const TunerOptions& options);

}  // namespace hstujit
