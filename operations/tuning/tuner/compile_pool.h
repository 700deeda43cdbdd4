// The producers of the tuner: threads that compile candidates in order and hand each result over as it is done. Each
// has a worker process that compiles for it, unless HSTUJIT_WORKER says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/plan/search_space.h"
#include "operations/tuning/tuner/tuner.h"
#include "operations/tuning/worker/compile_worker.h"
#include "runtime/engine/engine.h"

namespace hstujit {

struct PoolResult {
  size_t index = 0;  // in the list of candidates
  std::string source_digest;
  // Findings of an earlier run about this source: a candidate that it timed or rejected is not compiled. One that is
  // not reached has no binary, because the budget had ended; its source was made to see what is known about it.
  enum class Known { kNothing, kTimed, kRejected, kNotReached } known = Known::kNothing;
  const TuningRejection* rejection = nullptr;  // kRejected: what the earlier record says
  Result<KernelBinary> binary = Status(Code::kInternal, "not compiled");
  std::string reason;  // CompileWorker's, of a `binary` that is a failure
};

class CompilePool {
 public:
  // The candidates from `first` on. `earlier` may be null. The first candidate of all, the heuristic's, is compiled
  // even when it is known and whatever the budget is. After it comes the earlier record's winner: its source is made
  // whatever the budget is, so that a short run knows whether that winner is still what was timed.
  CompilePool(Engine& engine, const TuneProblem& problem, const std::vector<Candidate>& candidates, size_t first,
              const TuningRecord* earlier, const TunerOptions& options, std::chrono::steady_clock::time_point deadline);
  ~CompilePool();  // stops; waits for the compiles that are under way

  // The next result; none when all are delivered or the budget ended.
  std::optional<PoolResult> next();

  // Steps that are taken for a candidate: its source alone; its cubin when nothing is known; its cubin in any case.
  enum class Effort { kLook, kCompileUnknown, kCompile };
  // One candidate on the calling thread, which is always the same one, whatever the budget is.
  PoolResult produce(size_t index, Effort effort) { return produce(index, effort, workers_.back()); }

 private:
  using Worker = std::unique_ptr<CompileWorker>;  // null: this process compiles

  void work(const Worker& worker);
  PoolResult produce(size_t index, Effort effort, const Worker& worker) const;
  Result<Blobs> emit(const CompileRequest& request, const Worker& worker) const;

  Engine& engine_;
  const TuneProblem& problem_;
  const std::vector<Candidate>& candidates_;
  const TuningRecord* earlier_;
  std::chrono::steady_clock::time_point deadline_;
  Cancellation cancellation_;
  std::vector<size_t> order_;  // of the candidates
  size_t pinned_ = 0;          // so many of them come also after the deadline
  std::string nvrtc_;  // its version: another one may spill, fail and schedule differently; empty when there is none

  std::atomic<size_t> next_{0};  // in order_
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<PoolResult> results_;
  int running_ = 0;
  std::vector<Worker> workers_;  // by thread, and the last one for the caller of produce()
  std::vector<std::jthread> threads_;
};

}  // namespace hstujit
