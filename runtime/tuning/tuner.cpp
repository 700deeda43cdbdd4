#include "runtime/tuning/tuner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "compiler/generator/generator_digest.h"
#include "runtime/kernel_choice.h"
#include "runtime/tuning/compile_pool.h"

namespace hstujit {

namespace {

using Clock = std::chrono::steady_clock;

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

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

// One run of tune_problem.
class Run {
 public:
  Run(Engine& engine, CandidateBench& bench, const TuneProblem& problem, const TunerOptions& options,
      std::vector<Candidate> candidates)
      : engine_(engine), bench_(bench), problem_(problem), options_(options), candidates_(std::move(candidates)) {
    record_.key = tuning_key(*problem.spec, problem.direction, problem.device, problem.bucket);
    record_.workload = problem.workload;
    record_.heuristic = config_text(0);
    record_.environment["library"] = library_version();
    record_.environment["date"] = today();
  }

  Result<TuneReport> run();

 private:
  struct Entry {
    size_t index = 0;
    int number = 0;  // in the bench
    double ratio = 1;
    TimeSummary time;
    KernelBinary binary;
    std::string source_digest;
  };

  std::string config_text(size_t index) const { return key_text(candidates_[index].config); }
  std::string select(const TuningRecord& record) const;
  void reject(const PoolResult& result, std::string reason, std::string detail);
  Status take_heuristic(PoolResult result);
  void take(PoolResult result);
  Status time_finalists();
  void add_timed(const Entry& entry);
  Status keep_winner(const TuningRecord& merged);

  Engine& engine_;
  CandidateBench& bench_;
  const TuneProblem& problem_;
  const TunerOptions& options_;
  std::vector<Candidate> candidates_;
  TuningRecord record_;
  std::map<std::string, std::string> sources_;  // digests of today's, by config
  std::optional<Entry> heuristic_;
  std::vector<Entry> finalists_;  // best ratio first; the heuristic's is not among them
  std::vector<Entry> others_;     // timed, but no finalists; without their cubins
  TuneReport report_;
};

void Run::reject(const PoolResult& result, std::string reason, std::string detail) {
  engine_.log().event(LogCategory::kTune, "rejected",
                      {{"config", describe(candidates_[result.index].config)}, {"reason", reason}, {"detail", detail}});
  record_.rejected.push_back({config_text(result.index), result.source_digest, std::move(reason), std::move(detail)});
}

std::string Run::select(const TuningRecord& record) const {
  return select_winner(record, [this](const TimedCandidate& timing) {
    const auto source = sources_.find(timing.config);
    return source != sources_.end() && source->second == timing.source_digest;
  });
}

Status Run::take_heuristic(PoolResult result) {
  if (!result.binary.ok()) return result.binary.status();
  record_.environment["nvrtc"] = result.binary->info.nvrtc;
  HSTUJIT_ASSIGN_OR_RETURN(const int number, bench_.load({candidates_[0].config, result.binary->cubin}));
  if (const Status valid = bench_.validate(number); !valid.ok()) {
    return valid.with_context("the heuristic's config, " + describe(candidates_[0].config));
  }
  HSTUJIT_ASSIGN_OR_RETURN(const auto samples, bench_.time({number}, options_.quick_repeats));
  heuristic_ = Entry{0, number, 1, summarise(samples[0]), *result.binary, result.source_digest};
  ++report_.timed;
  return {};
}

void Run::take(PoolResult result) {
  if (!result.binary.ok()) {
    // A compiler that is missing or out of memory says nothing about the source.
    const bool lasts = result.binary.status().code() == Code::kCompileFailed;
    return reject(result, lasts ? "compile" : "failed", result.binary.status().message());
  }
  if (auto [reason, detail] = resource_rejection(result.binary->info.resources); !reason.empty()) {
    return reject(result, std::move(reason), std::move(detail));
  }
  const Result<int> number = bench_.load({candidates_[result.index].config, result.binary->cubin});
  if (!number.ok()) return reject(result, "load", number.status().message());
  if (const Status valid = bench_.validate(*number); !valid.ok()) {
    bench_.unload(*number);
    return reject(result, valid.code() == Code::kCheckFailed ? "wrong_result" : "failed", valid.message());
  }
  const auto samples = bench_.time({heuristic_->number, *number}, options_.quick_repeats);
  if (!samples.ok()) {
    bench_.unload(*number);
    return reject(result, "failed", samples.status().message());
  }
  ++report_.timed;
  Entry entry{result.index, *number, 1, summarise((*samples)[1]), *result.binary, result.source_digest};
  entry.ratio = entry.time.median_ms / summarise((*samples)[0]).median_ms;
  engine_.log().event(
      LogCategory::kTune, "timed",
      {{"config", describe(candidates_[entry.index].config)}, {"ms", entry.time.median_ms}, {"ratio", entry.ratio}});

  const double best = finalists_.empty() ? 1.0 : std::min(1.0, finalists_.front().ratio);
  const auto drop = [this](Entry slow) {
    bench_.unload(slow.number);
    slow.binary = {};
    others_.push_back(std::move(slow));
  };
  if (entry.ratio > best * options_.hopeless) return drop(std::move(entry));
  const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), entry,
                                      [](const Entry& a, const Entry& b) { return a.ratio < b.ratio; });
  finalists_.insert(place, std::move(entry));
  if (static_cast<int>(finalists_.size()) > options_.finalists) {
    Entry last = std::move(finalists_.back());
    finalists_.pop_back();
    drop(std::move(last));
  }
}

Status Run::time_finalists() {
  std::vector<int> numbers = {heuristic_->number};
  for (const Entry& entry : finalists_) numbers.push_back(entry.number);
  HSTUJIT_ASSIGN_OR_RETURN(const auto samples, bench_.time(numbers, options_.final_repeats));
  heuristic_->time = summarise(samples[0]);
  for (size_t i = 0; i < finalists_.size(); ++i) finalists_[i].time = summarise(samples[i + 1]);
  return {};
}

void Run::add_timed(const Entry& entry) {
  const double median_us = entry.time.median_ms * 1e3;
  record_.timed.push_back(
      {config_text(entry.index), problem_.workload, entry.source_digest, median_us, entry.time.spread * median_us});
}

Status Run::keep_winner(const TuningRecord& merged) {
  report_.record = merged;
  report_.heuristic = candidates_[0].config;
  report_.heuristic_us = heuristic_->time.median_ms * 1e3;
  HSTUJIT_ASSIGN_OR_RETURN(report_.winner,
                           parse_kernel_config(nlohmann::ordered_json::parse(merged.winner, nullptr, false)));
  if (const TimedCandidate* timing = merged.timing(merged.winner)) {
    report_.winner_us = timing->median_us;
    report_.winner_spread_us = timing->spread_us;
  }
  CompileRequest request{problem_.spec, problem_.direction, report_.winner, problem_.device, engine_.lineinfo()};
  finalists_.push_back(*heuristic_);
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
  const auto start = Clock::now();
  const auto deadline =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.budget_s));
  const std::optional<TuningRecord> earlier = engine_.tuning().find(record_.key);
  report_.candidates = static_cast<int>(candidates_.size());
  size_t done = 0;
  {
    CompilePool pool(engine_, problem_, candidates_, earlier ? &*earlier : nullptr, options_.jobs, deadline);
    std::vector<PoolResult> waiting;  // compiled before the heuristic's config was
    while (auto result = pool.next()) {
      sources_[config_text(result->index)] = result->source_digest;
      if (result->known == PoolResult::Known::kNotReached) continue;
      ++done;
      if (options_.progress) {
        options_.progress(done, candidates_.size(), describe(candidates_[result->index].config));
      }
      if (result->index == 0) {
        HSTUJIT_RETURN_IF_ERROR(take_heuristic(std::move(*result)));
        for (PoolResult& early : waiting) take(std::move(early));
        waiting.clear();
      } else if (result->known != PoolResult::Known::kNothing) {
        report_.resumed += result->known == PoolResult::Known::kTimed ? 1 : 0;
      } else if (!heuristic_) {
        waiting.push_back(std::move(*result));
      } else {
        take(std::move(*result));
      }
    }
  }
  if (!heuristic_) return Status(Code::kInternal, "the heuristic's config was not compiled");
  report_.skipped = report_.candidates - static_cast<int>(done);
  HSTUJIT_RETURN_IF_ERROR(time_finalists());

  add_timed(*heuristic_);
  for (const Entry& entry : finalists_) add_timed(entry);
  for (Entry& entry : others_) {
    // Timed earlier and with few repeats, when the clock may have been another: the ratio is what was found out.
    entry.time.median_ms = entry.ratio * heuristic_->time.median_ms;
    add_timed(entry);
  }
  HSTUJIT_ASSIGN_OR_RETURN(const TuningRecord known, merge_records(earlier.value_or(record_), record_));
  record_.winner = select(known);
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, engine_.tuning().add(record_));
  // Another process may have tuned meanwhile, on another workload, too; what is reported is what this run found out.
  merged.workload = problem_.workload;
  merged.winner = record_.winner;
  HSTUJIT_RETURN_IF_ERROR(keep_winner(merged));
  report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return std::move(report_);
}

}  // namespace

Result<TuneReport> tune_problem(Engine& engine, CandidateBench& bench, const TuneProblem& problem,
                                const TunerOptions& options) {
  const ProblemSize size = heuristic_size(problem.bucket);
  SearchSpace space = search_space(*problem.spec, problem.direction, problem.device, size);
  if (space.candidates.empty()) {
    // Says why, with the commonest rejections.
    return heuristic_config(*problem.spec, problem.direction, problem.device, size).status();
  }
  return Run(engine, bench, problem, options, std::move(space.candidates)).run();
}

}  // namespace hstujit
