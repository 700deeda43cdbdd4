#include <fmt/format.h>

#include "compiler/support/json.h"
#include "operations/tuning/tuner/tuning_run.h"
#include "runtime/dispatch/resource_rejection.h"

namespace hstujit {

// Loads and validates; none when the candidate is rejected.
Result<std::optional<TuningRun::Entry>> TuningRun::admit(PoolResult result, bool whatever_resources) {
  if (!result.binary.ok()) {
    // A compiler that is missing or out of memory says nothing about the source.
    const bool lasts = result.binary.status().code() == Code::kCompileFailed;
    if (result.reason.empty()) result.reason = lasts ? "compile" : "failed";
    reject(result.index, result.source_digest, std::move(result.reason), result.binary.status());
    return std::optional<Entry>();
  }
  findings_.saw_nvrtc(result.binary->info.nvrtc);
  if (auto rejection = resource_rejection(result.binary->info.resources); rejection && !whatever_resources) {
    reject(result.index, result.source_digest, std::move(rejection->reason),
           Status(Code::kCompileFailed, std::move(rejection->detail)));
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
PoolResult TuningRun::produce(CompilePool& pool, size_t index, CompilePool::Effort effort) {
  PoolResult result = pool.produce(index, effort);
  if (result.reason == "compile_timeout" && Clock::now() > deadline_ && ++late_timeouts_ >= options_.late_timeouts) {
    end(fmt::format("{} compiles took more than {} s each after the budget had ended", late_timeouts_,
                    options_.compile_limit_s));
  }
  return result;
}

PoolResult TuningRun::wait_for(CompilePool& pool, size_t index) {
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
Status TuningRun::find_baseline(CompilePool& pool, size_t first) {
  for (size_t index = first; index < candidates_.size() && !baseline_ && !ended(); ++index) {
    PoolResult result = wait_for(pool, index);
    begin(result);
    if (!result.binary.ok() && result.binary.status().code() == Code::kNoCompiler) return result.binary.status();
    HSTUJIT_RETURN_IF_ERROR(try_baseline(pool, std::move(result)));
    if (index == 0 && !baseline_) heuristic_failure_ = last_failure_;
    HSTUJIT_RETURN_IF_ERROR(findings_.checkpoint());
  }
  return baseline_ ? Status() : findings_.store().status();
}

Status TuningRun::no_baseline() const {
  return heuristic_failure_.with_context(fmt::format("no candidate of {} passed{}{}; the heuristic's config, {}", done_,
                                                     ended() ? ", and " : "", report_.ended_early,
                                                     describe(candidates_[0].config)));
}

Status TuningRun::try_baseline(CompilePool& pool, PoolResult result) {
  const size_t index = result.index;
  if (index > 0 && (result.known == PoolResult::Known::kTimed || result.known == PoolResult::Known::kNotReached)) {
    result = produce(pool, index, CompilePool::Effort::kCompile);
  }
  findings_.saw_source(candidates_[index].config, result.source_digest);
  if (result.known == PoolResult::Known::kRejected) {
    // Objections of the assembler to the heuristic's config do not count: it was not run then.
    const auto rejection =
        result.binary.ok() ? resource_rejection(result.binary->info.resources) : std::optional<Rejection>();
    const bool resources = rejection && rejection->reason == result.rejection->reason;
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

}  // namespace hstujit
