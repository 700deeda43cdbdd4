#include "operations/tuning/tuner/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/json.h"
#include "operations/tuning/tuner/tuning_run.h"
#include "runtime/dispatch/kernel_choice.h"
#include "runtime/engine/generator_keys.h"

namespace hstujit {

bool TuningRun::is_known(const Candidate& candidate) const {
  const TuningRecord* const earlier = findings_.earlier();
  if (earlier == nullptr) return false;
  const RecordedConfig config = key_text(candidate.config);
  return config == earlier->winner || earlier->timing(config, problem_.workload) != nullptr;
}

double TuningRun::far_estimate(const Candidate& candidate) const {
  if (options_.far_estimate) return *options_.far_estimate;
  const Result<const Skeleton*> skeleton = find_skeleton(candidate.config.skeleton);
  return skeleton.ok() ? (*skeleton)->estimate_error() : options_.worst_estimate;
}

// Candidates come in the order of their estimates. What has won before, or has a time, stays: that time may win again.
void TuningRun::leave_out_slow() {
  const double best = trusted_ms_ = candidates_.front().estimate_ms;
  report_.left_out = static_cast<int>(std::erase_if(candidates_, [&](const Candidate& candidate) {
    return candidate.estimate_ms > best * options_.worst_estimate && !is_known(candidate);
  }));
  const auto far = std::stable_partition(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
    return !(candidate.estimate_ms > best * far_estimate(candidate)) || is_known(candidate);
  });
  far_.assign(far, candidates_.end());
  candidates_.erase(far, candidates_.end());
}

// Where what is best in this run, beyond noise, is what the cost model took for slow, its estimate is what others are
// held against from now on.
void TuningRun::take_far() {
  if (!baseline_) {
    candidates_.insert(candidates_.end(), far_.begin(), far_.end());
    far_.clear();
    return;
  }
  constexpr double kFaster = 0.99;
  const Candidate& best = candidates_[best_ratio() < kFaster ? finalists_.front().index : baseline_->index];
  const double near = 1 + (far_estimate(best) - 1) / 2;
  if (!(best.estimate_ms > trusted_ms_ * near)) return;
  trusted_ms_ = best.estimate_ms;
  const auto far = std::stable_partition(far_.begin(), far_.end(), [this](const Candidate& candidate) {
    return candidate.estimate_ms <= trusted_ms_ * far_estimate(candidate);
  });
  candidates_.insert(candidates_.end(), far_.begin(), far);
  far_.erase(far_.begin(), far);
}

void TuningRun::end(std::string why) {
  engine_.log().event(LogCategory::kTune, "ended_early", {{"reason", why}});
  report_.ended_early = std::move(why);
}

void TuningRun::begin(const PoolResult& result) {
  ++done_;
  if (options_.progress) {
    options_.progress(static_cast<size_t>(done_), candidates_.size(), describe(candidates_[result.index].config));
  }
}

void TuningRun::reject(size_t index, const std::string& source_digest, std::string reason, Status failure) {
  if (is_cancelled()) return;  // a worker that was killed for that tells nothing about its candidate
  engine_.log().event(
      LogCategory::kTune, "rejected",
      {{"config", describe(candidates_[index].config)}, {"reason", reason}, {"detail", failure.message()}});
  findings_.add_rejection({config_text(index), source_digest, std::move(reason), failure.message()});
  last_failure_ = std::move(failure);
}

// A call of the bench for this candidate failed. `reason` is for a bench that is sound.
Status TuningRun::fail(const Entry& entry, const Status& failure, std::string reason) {
  const BenchState state = bench_->state();
  if (state == BenchState::kCrashed) reason = "crashed";
  if (state == BenchState::kTimedOut) reason = "timeout";
  reject(entry.index, entry.source_digest, std::move(reason), failure);
  if (state != BenchState::kSound) return replace_bench(failure.message());
  if (entry.number != kNotLoaded) bench_->unload(entry.number);
  return {};
}

Status TuningRun::replace_bench(const std::string& why) {
  // Before anything else runs: what broke this bench may be worse than the bench can say.
  HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
  bench_.reset();
  if (is_cancelled()) return {};
  for (Entry& entry : finalists_) entry.number = kNotLoaded;
  if (report_.restarts >= options_.bench_restarts) {
    end(fmt::format("candidates broke the bench {} times, and bench_restarts is {}; the last failure: {}",
                    report_.restarts + 1, options_.bench_restarts, why));
    return {};
  }
  ++report_.restarts;
  auto bench = factory_();
  if (!bench.ok()) {
    end(fmt::format("a candidate broke the bench ({}), and no other could be made: {}", why, bench.status().message()));
    return {};
  }
  bench_ = std::move(*bench);
  if (!baseline_) return {};
  const auto restore = [this]() -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(baseline_->number,
                             bench_->load({candidates_[baseline_->index].config, baseline_->binary.cubin}));
    HSTUJIT_ASSIGN_OR_RETURN(const auto samples, time({baseline_->number}, options_.quick_repeats));
    add_timing(*baseline_, samples[0], samples[0]);
    return {};
  };
  if (const Status restored = restore(); !restored.ok()) {
    end(fmt::format("a candidate broke the bench ({}), and the baseline fails on a new one: {}", why,
                    restored.message()));
  }
  return {};
}

Result<std::vector<std::vector<double>>> TuningRun::time(const std::vector<int>& numbers, int repeats) {
  HSTUJIT_ASSIGN_OR_RETURN(std::vector<std::vector<double>> samples, bench_->time(numbers, repeats));
  return without_drift(std::move(samples));
}

void TuningRun::add_timing(const Entry& entry, const std::vector<double>& samples,
                           const std::vector<double>& baseline_samples) {
  const TimeSummary time = summarise(samples);
  const double median_us = time.median_ms * 1e3;
  findings_.add_timing(
      {config_text(entry.index),
       problem_.workload,
       entry.source_digest,
       median_us,
       time.spread * median_us,
       {config_text(baseline_->index), baseline_->source_digest, summarise(baseline_samples).median_ms * 1e3}});
}

Status TuningRun::keep_winner() {
  const TuningRecord& record = report_.record;
  report_.heuristic = candidates_[0].config;
  if (const TimedCandidate* timing = record.timing(record.heuristic)) {
    report_.heuristic_us = timing->median_us * record.drift(*timing);
  }
  HSTUJIT_ASSIGN_OR_RETURN(report_.winner, parse_kernel_config(json_or_null(record.winner.text())));
  if (const TimedCandidate* timing = record.timing(record.winner)) {
    const double drift = record.drift(*timing);
    report_.winner_us = timing->median_us * drift;
    report_.winner_spread_us = timing->spread_us * drift;
  }
  const CompileRequest request{problem_.spec, problem_.direction, report_.winner, problem_.device, engine_.lineinfo()};
  finalists_.push_back(std::move(*baseline_));
  for (Entry& entry : finalists_) {
    if (candidates_[entry.index].config == report_.winner) {
      engine_.kernels().keep(request, std::move(entry.binary));
      return {};
    }
  }
  // The winner of an earlier run, which this one did not compile.
  return engine_.kernels().get(request, true).status();
}

// The candidates from `first` on, if any passes, are timed against the baseline, or one of them becomes it.
Status TuningRun::try_from(size_t first) {
  CompilePool pool(engine_, problem_, candidates_, first, findings_.earlier(), options_, deadline_);
  if (!baseline_) HSTUJIT_RETURN_IF_ERROR(find_baseline(pool, first));
  if (!baseline_) return {};
  for (auto& [index, early] : waiting_) {
    if (!ended()) HSTUJIT_RETURN_IF_ERROR(consider(std::move(early)));
  }
  waiting_.clear();
  while (!ended()) {
    std::optional<PoolResult> result = pool.next();
    if (!result) break;
    findings_.saw_source(candidates_[result->index].config, result->source_digest);
    HSTUJIT_RETURN_IF_ERROR(consider(std::move(*result)));
  }
  return {};
}

// Reads the winner of a record that another library may have written.
std::optional<KernelConfig> TuningRun::usable(const RecordedConfig& winner) const {
  const Result<KernelConfig> config = parse_kernel_config(json_or_null(winner.text()));
  if (!config.ok()) return std::nullopt;
  const std::string refusal =
      config_refusal(*problem_.spec, problem_.direction, problem_.device, problem_.restriction, *config);
  return refusal.empty() ? std::optional(*config) : std::nullopt;
}

Result<TuneReport> TuningRun::run() {
  HSTUJIT_ASSIGN_OR_RETURN(bench_, factory_());
  for (size_t first = 0; first < candidates_.size() && !ended();) {
    if (!baseline_ || Clock::now() < deadline_) HSTUJIT_RETURN_IF_ERROR(try_from(first));
    first = candidates_.size();
    take_far();
  }
  if (is_cancelled()) {
    HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
    return options_.cancellation.status("tuning");
  }
  if (!baseline_) return no_baseline();
  report_.left_out += static_cast<int>(far_.size());
  report_.candidates = static_cast<int>(candidates_.size());
  report_.skipped = report_.candidates - done_;
  HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
  if (!ended()) HSTUJIT_RETURN_IF_ERROR(time_finalists());
  if (is_cancelled()) return options_.cancellation.status("tuning");
  bench_.reset();
  HSTUJIT_ASSIGN_OR_RETURN(report_.record, findings_.store());
  if (const TuningRecord* const staying = findings_.staying()) {
    if (const auto winner = usable(staying->winner)) {
      report_.staying = {*winner, staying->rows};
    } else {
      HSTUJIT_ASSIGN_OR_RETURN(report_.record, findings_.take_over());
    }
  }
  // Choices from before the key was tuned decide nothing any more.
  engine_.tuning().drop_choice(report_.record.key, choice_generator(*problem_.spec, problem_.direction));
  HSTUJIT_RETURN_IF_ERROR(keep_winner());
  report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return std::move(report_);
}

Result<TuneReport> tune_problem(Engine& engine, const BenchFactory& factory, const TuneProblem& problem,
                                const TunerOptions& options) {
  const ProblemSize size = heuristic_size(problem.bucket);
  SearchSpace space = search_space(*problem.spec, problem.direction, problem.device, size, problem.restriction);
  if (space.candidates.empty()) {
    // Says why, with the commonest rejections.
    return heuristic_config(*problem.spec, problem.direction, problem.device, size, problem.restriction).status();
  }
  return TuningRun(engine, factory, problem, options, std::move(space.candidates)).run();
}

}  // namespace hstujit
