#include "runtime/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "runtime/kernel_choice.h"
#include "runtime/tuning/compile_pool.h"
#include "runtime/tuning/findings.h"

namespace hstujit {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotLoaded = -1;

// What the assembler says against a kernel that is right: "" when nothing.
std::pair<std::string, std::string> resource_rejection(const std::string& text) {
  const auto resources = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!resources.is_object()) return {};
  if (const auto rejects = resources.find("rejects"); rejects != resources.end() && rejects->is_array()) {
    for (const auto& reject : *rejects) {
      if (reject.is_object()) return {reject.value("reason", "resources"), reject.value("detail", "")};
    }
  }
  const int64_t spilled =
      resources.value("spill_store_bytes", int64_t{0}) + resources.value("spill_load_bytes", int64_t{0});
  if (spilled > 0) return {"spill", fmt::format("{} bytes of registers spill to memory", spilled)};
  return {};
}

// The schedule of one run of tune_problem: what is tried when, and what a failure means. A Status of its functions is
// the end of the run without a result; a candidate's failure is a finding, and a bench that cannot be had again ends
// the trying (ended()), but not the run.
class Run {
 public:
  Run(Engine& engine, const BenchFactory& factory, const TuneProblem& problem, const TunerOptions& options,
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
  // A candidate that was validated.
  struct Entry {
    size_t index = 0;
    std::string source_digest;
    KernelBinary binary;
    int number = kNotLoaded;  // in the bench
    double ratio = 1;         // of its time to the baseline's
  };

  void leave_out_slow();
  std::string config_text(size_t index) const { return key_text(candidates_[index].config); }
  bool ended() const { return !report_.ended_early.empty(); }
  void end(std::string why);
  void begin(const PoolResult& result);
  void reject(size_t index, const std::string& source_digest, std::string reason, Status failure);
  Status fail(const Entry& entry, const Status& failure, std::string reason);
  Status replace_bench(const std::string& why);
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats);
  Result<std::optional<Entry>> admit(PoolResult result, bool whatever_resources);
  PoolResult wait_for(CompilePool& pool, size_t index);
  PoolResult produce(CompilePool& pool, size_t index, CompilePool::Effort effort);
  Status find_baseline(CompilePool& pool);
  Status try_baseline(CompilePool& pool, PoolResult result);
  Status consider(PoolResult result);
  double best_ratio() const { return finalists_.empty() ? 1.0 : std::min(1.0, finalists_.front().ratio); }
  void rank(Entry entry);
  Status time_finalists();
  Status drop_finalist(std::vector<Entry>::iterator place, const Status& failure, std::string reason);
  void add_timing(const Entry& entry, const std::vector<double>& samples, const std::vector<double>& baseline_samples);
  Status keep_winner();

  Engine& engine_;
  const BenchFactory& factory_;
  const TuneProblem& problem_;
  const TunerOptions& options_;
  std::vector<Candidate> candidates_;
  Findings findings_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;
  std::unique_ptr<CandidateBench> bench_;
  std::map<size_t, PoolResult> waiting_;  // compiled before the baseline was found, by index
  std::optional<Entry> baseline_;
  Status last_failure_;           // of a candidate
  std::vector<Entry> finalists_;  // best ratio first; the baseline is not among them
  int done_ = 0;
  int late_timeouts_ = 0;
  TuneReport report_;
};

// Candidates come in the order of their estimates. What has won before stays.
void Run::leave_out_slow() {
  const double worst = candidates_.front().estimate_ms * options_.worst_estimate;
  const std::string winner = findings_.earlier() != nullptr ? findings_.earlier()->winner : "";
  report_.left_out = static_cast<int>(std::erase_if(candidates_, [&](const Candidate& candidate) {
    return candidate.estimate_ms > worst && (winner.empty() || !same_config(key_text(candidate.config), winner));
  }));
}

void Run::end(std::string why) {
  engine_.log().event(LogCategory::kTune, "ended_early", {{"reason", why}});
  report_.ended_early = std::move(why);
}

void Run::begin(const PoolResult& result) {
  ++done_;
  if (options_.progress) {
    options_.progress(static_cast<size_t>(done_), candidates_.size(), describe(candidates_[result.index].config));
  }
}

void Run::reject(size_t index, const std::string& source_digest, std::string reason, Status failure) {
  engine_.log().event(
      LogCategory::kTune, "rejected",
      {{"config", describe(candidates_[index].config)}, {"reason", reason}, {"detail", failure.message()}});
  findings_.add_rejection({config_text(index), source_digest, std::move(reason), failure.message()});
  last_failure_ = std::move(failure);
}

// A call of the bench for this candidate failed. `reason` is for a bench that is sound.
Status Run::fail(const Entry& entry, const Status& failure, std::string reason) {
  const BenchState state = bench_->state();
  if (state == BenchState::kCrashed) reason = "crashed";
  if (state == BenchState::kTimedOut) reason = "timeout";
  reject(entry.index, entry.source_digest, std::move(reason), failure);
  if (state != BenchState::kSound) return replace_bench(failure.message());
  if (entry.number != kNotLoaded) bench_->unload(entry.number);
  return {};
}

Status Run::replace_bench(const std::string& why) {
  // Before anything else runs: what broke this bench may be worse than the bench can say.
  HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
  bench_.reset();
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

Result<std::vector<std::vector<double>>> Run::time(const std::vector<int>& numbers, int repeats) {
  HSTUJIT_ASSIGN_OR_RETURN(std::vector<std::vector<double>> samples, bench_->time(numbers, repeats));
  return without_drift(std::move(samples));
}

// Loads and validates; none when the candidate is rejected.
Result<std::optional<Run::Entry>> Run::admit(PoolResult result, bool whatever_resources) {
  if (!result.binary.ok()) {
    // A compiler that is missing or out of memory says nothing about the source.
    const bool lasts = result.binary.status().code() == Code::kCompileFailed;
    if (result.reason.empty()) result.reason = lasts ? "compile" : "failed";
    reject(result.index, result.source_digest, std::move(result.reason), result.binary.status());
    return std::optional<Entry>();
  }
  findings_.saw_nvrtc(result.binary->info.nvrtc);
  if (auto [reason, detail] = resource_rejection(result.binary->info.resources);
      !reason.empty() && !whatever_resources) {
    reject(result.index, result.source_digest, std::move(reason), Status(Code::kCompileFailed, std::move(detail)));
    return std::optional<Entry>();
  }
  Entry entry{result.index, std::move(result.source_digest), std::move(*result.binary)};
  const Result<int> number = bench_->load({candidates_[entry.index].config, entry.binary.cubin});
  if (!number.ok()) {
    HSTUJIT_RETURN_IF_ERROR(fail(entry, number.status(), "load"));
    return std::optional<Entry>();
  }
  entry.number = *number;
  if (const Status valid = bench_->validate(entry.number); !valid.ok()) {
    HSTUJIT_RETURN_IF_ERROR(fail(entry, valid, valid.code() == Code::kCheckFailed ? "wrong_result" : "failed"));
    return std::optional<Entry>();
  }
  return std::optional<Entry>(std::move(entry));
}

// A compile for want of a baseline. Where each of them hangs, this is what ends the run.
PoolResult Run::produce(CompilePool& pool, size_t index, CompilePool::Effort effort) {
  PoolResult result = pool.produce(index, effort);
  if (result.reason == "compile_timeout" && Clock::now() > deadline_ && ++late_timeouts_ >= options_.late_timeouts) {
    end(fmt::format("{} compiles took more than {} s each after the budget had ended", late_timeouts_,
                    options_.compile_limit_s));
  }
  return result;
}

PoolResult Run::wait_for(CompilePool& pool, size_t index) {
  while (!waiting_.contains(index)) {
    std::optional<PoolResult> result = pool.next();
    // The budget has ended, but there must be something to run.
    if (!result) return produce(pool, index, CompilePool::Effort::kCompileUnknown);
    findings_.saw_source(candidates_[result->index].config, result->source_digest);
    waiting_.emplace(result->index, std::move(*result));
  }
  PoolResult result = std::move(waiting_.at(index));
  waiting_.erase(index);
  return result;
}

// The first candidate, in the cost model's order, that passes: the heuristic's as a rule.
Status Run::find_baseline(CompilePool& pool) {
  Status heuristic_failure;
  for (size_t index = 0; index < candidates_.size() && !baseline_ && !ended(); ++index) {
    PoolResult result = wait_for(pool, index);
    begin(result);
    if (!result.binary.ok() && result.binary.status().code() == Code::kNoCompiler) return result.binary.status();
    HSTUJIT_RETURN_IF_ERROR(try_baseline(pool, std::move(result)));
    if (index == 0 && !baseline_) heuristic_failure = last_failure_;
    HSTUJIT_RETURN_IF_ERROR(findings_.checkpoint());
  }
  if (baseline_) return {};
  HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
  return heuristic_failure.with_context(fmt::format("no candidate of {} passed{}{}; the heuristic's config, {}", done_,
                                                    ended() ? ", and " : "", report_.ended_early,
                                                    describe(candidates_[0].config)));
}

Status Run::try_baseline(CompilePool& pool, PoolResult result) {
  const size_t index = result.index;
  if (index > 0 && (result.known == PoolResult::Known::kTimed || result.known == PoolResult::Known::kNotReached)) {
    result = produce(pool, index, CompilePool::Effort::kCompile);
  }
  findings_.saw_source(candidates_[index].config, result.source_digest);
  if (result.known == PoolResult::Known::kRejected) {
    // What the assembler had against the heuristic's config does not count: it was not run then.
    const bool resources =
        result.binary.ok() && resource_rejection(result.binary->info.resources).first == result.rejection->reason;
    if (index > 0 || !resources) {
      last_failure_ = Status(Code::kCheckFailed, result.rejection->detail);
      return {};
    }
  }
  HSTUJIT_ASSIGN_OR_RETURN(std::optional<Entry> entry, admit(std::move(result), index == 0));
  if (!entry) return {};
  const auto samples = time({entry->number}, options_.quick_repeats);
  if (!samples.ok()) return fail(*entry, samples.status(), "failed");
  ++report_.timed;
  baseline_ = std::move(*entry);
  add_timing(*baseline_, (*samples)[0], (*samples)[0]);
  return {};
}

Status Run::consider(PoolResult result) {
  if (result.known == PoolResult::Known::kNotReached) return {};
  begin(result);
  if (result.known != PoolResult::Known::kNothing) {
    report_.resumed += result.known == PoolResult::Known::kTimed ? 1 : 0;
    return {};
  }
  HSTUJIT_ASSIGN_OR_RETURN(std::optional<Entry> entry, admit(std::move(result), false));
  if (!entry) return findings_.checkpoint();
  const std::vector<int> pair = {baseline_->number, entry->number};
  auto samples = time(pair, options_.first_repeats);
  const auto ratio = [&] { return summarise((*samples)[1]).median_ms / summarise((*samples)[0]).median_ms; };
  // In every repeat: something else on the device may have delayed a launch.
  const auto hopeless = [&] {
    const double worst = best_ratio() * options_.hopeless;
    return std::ranges::equal((*samples)[1], (*samples)[0],
                              [worst](double mine, double baseline) { return mine > baseline * worst; });
  };
  if (samples.ok() && !hopeless()) samples = time(pair, options_.quick_repeats);
  if (!samples.ok()) {
    // The candidate's fault also when the launch was the baseline's, which ran well until this one's came between.
    HSTUJIT_RETURN_IF_ERROR(fail(*entry, samples.status(), "failed"));
    return findings_.checkpoint();
  }
  ++report_.timed;
  entry->ratio = ratio();
  engine_.log().event(LogCategory::kTune, "timed",
                      {{"config", describe(candidates_[entry->index].config)},
                       {"ms", summarise((*samples)[1]).median_ms},
                       {"ratio", entry->ratio}});
  add_timing(*entry, (*samples)[1], (*samples)[0]);
  rank(std::move(*entry));
  return findings_.checkpoint();
}

void Run::rank(Entry entry) {
  if (entry.ratio > best_ratio() * options_.no_finalist) return bench_->unload(entry.number);
  const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), entry,
                                      [](const Entry& a, const Entry& b) { return a.ratio < b.ratio; });
  finalists_.insert(place, std::move(entry));
  if (static_cast<int>(finalists_.size()) <= options_.finalists) return;
  if (finalists_.back().number != kNotLoaded) bench_->unload(finalists_.back().number);
  finalists_.pop_back();
}

// A finalist that fails is left out, and the others meet again.
Status Run::time_finalists() {
  while (!ended()) {
    const auto unloaded = std::find_if(finalists_.begin(), finalists_.end(),
                                       [](const Entry& entry) { return entry.number == kNotLoaded; });
    if (unloaded != finalists_.end()) {
      const Result<int> number = bench_->load({candidates_[unloaded->index].config, unloaded->binary.cubin});
      if (number.ok()) {
        unloaded->number = *number;
      } else {
        HSTUJIT_RETURN_IF_ERROR(drop_finalist(unloaded, number.status(), "load"));
      }
      continue;
    }
    std::vector<int> numbers = {baseline_->number};
    for (const Entry& entry : finalists_) numbers.push_back(entry.number);
    const auto samples = time(numbers, options_.final_repeats);
    if (samples.ok()) {
      add_timing(*baseline_, (*samples)[0], (*samples)[0]);
      for (size_t i = 0; i < finalists_.size(); ++i) add_timing(finalists_[i], (*samples)[i + 1], (*samples)[0]);
      return {};
    }
    const auto culprit = std::find_if(finalists_.begin(), finalists_.end(),
                                      [this](const Entry& entry) { return entry.number == bench_->culprit(); });
    if (culprit == finalists_.end()) {
      end(fmt::format("the baseline failed among the finalists, whose first times stand: {}",
                      samples.status().message()));
    } else {
      HSTUJIT_RETURN_IF_ERROR(drop_finalist(culprit, samples.status(), "failed"));
    }
  }
  return {};
}

Status Run::drop_finalist(std::vector<Entry>::iterator place, const Status& failure, std::string reason) {
  const Entry entry = std::move(*place);
  finalists_.erase(place);
  return fail(entry, failure, std::move(reason));
}

void Run::add_timing(const Entry& entry, const std::vector<double>& samples,
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

Status Run::keep_winner() {
  const TuningRecord& record = report_.record;
  report_.heuristic = candidates_[0].config;
  if (const TimedCandidate* timing = record.timing(record.heuristic)) {
    report_.heuristic_us = timing->median_us * record.drift(*timing);
  }
  HSTUJIT_ASSIGN_OR_RETURN(report_.winner,
                           parse_kernel_config(nlohmann::ordered_json::parse(record.winner, nullptr, false)));
  if (const TimedCandidate* timing = record.timing(record.winner)) {
    report_.winner_us = timing->median_us * record.drift(*timing);
    report_.winner_spread_us = timing->spread_us * record.drift(*timing);
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

Result<TuneReport> Run::run() {
  report_.candidates = static_cast<int>(candidates_.size());
  HSTUJIT_ASSIGN_OR_RETURN(bench_, factory_());
  {
    CompilePool pool(engine_, problem_, candidates_, findings_.earlier(), options_, deadline_);
    HSTUJIT_RETURN_IF_ERROR(find_baseline(pool));
    for (auto& [index, early] : waiting_) {
      if (!ended()) HSTUJIT_RETURN_IF_ERROR(consider(std::move(early)));
    }
    while (!ended()) {
      std::optional<PoolResult> result = pool.next();
      if (!result) break;
      findings_.saw_source(candidates_[result->index].config, result->source_digest);
      HSTUJIT_RETURN_IF_ERROR(consider(std::move(*result)));
    }
  }
  report_.skipped = report_.candidates - done_;
  HSTUJIT_RETURN_IF_ERROR(findings_.store().status());
  if (!ended()) HSTUJIT_RETURN_IF_ERROR(time_finalists());
  bench_.reset();
  HSTUJIT_ASSIGN_OR_RETURN(report_.record, findings_.store());
  HSTUJIT_RETURN_IF_ERROR(keep_winner());
  report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return std::move(report_);
}

}  // namespace

Result<TuneReport> tune_problem(Engine& engine, const BenchFactory& factory, const TuneProblem& problem,
                                const TunerOptions& options) {
  const ProblemSize size = heuristic_size(problem.bucket);
  SearchSpace space = search_space(*problem.spec, problem.direction, problem.device, size, problem.restriction);
  if (space.candidates.empty()) {
    // Says why, with the commonest rejections.
    return heuristic_config(*problem.spec, problem.direction, problem.device, size, problem.restriction).status();
  }
  return Run(engine, factory, problem, options, std::move(space.candidates)).run();
}

}  // namespace hstujit
