#include "operations/tuning/tuner/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/date.h"
#include "runtime/dispatch/kernel_choice.h"

namespace hstujit {

namespace {

// Storing may take this part of the run at most.
constexpr int kStorePart = 20;

template <typename Candidate>
void erase_config(std::vector<Candidate>& candidates, const RecordedConfig& config) {
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.config == config; });
}

}  // namespace

Findings::Findings(Engine& engine, const TuneProblem& problem, const KernelConfig& heuristic,
                   const TunerOptions& options)
    : engine_(engine), options_(options) {
  record_.key = tuning_key(*problem.spec, problem.direction, problem.device, problem.bucket, problem.restriction);
  record_.workload = problem.workload;
  record_.rows = problem.rows;
  record_.heuristic = key_text(heuristic);
  record_.environment["library"] = library_version();
  record_.environment["date"] = utc_date();
  earlier_ = engine.tuning().find(record_.key);
}

void Findings::add_timing(TimedCandidate timing) {
  erase_config(record_.rejected, timing.config);
  erase_config(record_.timed, timing.config);
  record_.timed.push_back(std::move(timing));
  ++unstored_;
}

void Findings::add_rejection(TuningRejection rejection) {
  // One for the moment leaves the time that this run took before.
  if (rejection.is_permanent()) erase_config(record_.timed, rejection.config);
  erase_config(record_.rejected, rejection.config);
  record_.rejected.push_back(std::move(rejection));
  ++unstored_;
}

Status Findings::checkpoint() {
  const Clock::duration interval = std::max<Clock::duration>(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.checkpoint_s)),
      options_.checkpoint_s > 0 ? store_time_ * kStorePart : Clock::duration::zero());
  if (unstored_ < options_.checkpoint_findings || Clock::now() - stored_at_ < interval) return {};
  return store().status();
}

Result<TuningRecord> Findings::store() {
  const auto start = Clock::now();
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord known, merge_records(earlier_.value_or(record_), record_));
  known.workload = record_.workload;
  known.heuristic = record_.heuristic;
  record_.winner = select_winner(known, [this](const TimedCandidate& timing) {
    const auto source = sources_.find(timing.config);
    return source != sources_.end() && source->second == timing.source_digest;
  });
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, engine_.tuning().add(record_));
  staying_ = merged.workload != record_.workload && record_.rows > 0 ? std::optional(merged) : std::nullopt;
  // Another process may have tuned meanwhile, on another workload, too.
  merged.workload = record_.workload;
  merged.rows = record_.rows;
  merged.heuristic = record_.heuristic;
  merged.winner = record_.winner;
  unstored_ = 0;
  stored_at_ = Clock::now();
  store_time_ = stored_at_ - start;
  return merged;
}

Result<TuningRecord> Findings::take_over() {
  record_.rows = staying_->rows;
  return store();
}

}  // namespace hstujit
