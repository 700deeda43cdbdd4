// The producers of the tuner: threads that compile candidates in order and hand each result over as it is done.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/plan/search_space.h"
#include "runtime/engine.h"
#include "runtime/tuning/tuner.h"

namespace hstujit {

struct PoolResult {
  size_t index = 0;  // in the list of candidates
  std::string source_digest;
  // What an earlier run found out about this source; such a candidate is not compiled.
  enum class Known { kNothing, kTimed, kRejected } known = Known::kNothing;
  Result<KernelBinary> binary = Status(Code::kInternal, "not compiled");
};

class CompilePool {
 public:
  // `earlier` may be null. The first candidate, the heuristic's, is compiled even when it is known.
  CompilePool(Engine& engine, const TuneProblem& problem, const std::vector<Candidate>& candidates,
              const TuningRecord* earlier, int jobs, std::chrono::steady_clock::time_point deadline);
  ~CompilePool();  // stops; waits for the compiles that are under way

  // The next result; none when all are delivered or the budget ended.
  std::optional<PoolResult> next();

 private:
  void work();
  PoolResult produce(size_t index) const;

  Engine& engine_;
  const TuneProblem& problem_;
  const std::vector<Candidate>& candidates_;
  const TuningRecord* earlier_;
  std::chrono::steady_clock::time_point deadline_;
  std::string nvrtc_;  // its version: another one may spill, fail and schedule differently; empty when there is none

  std::atomic<size_t> next_index_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<PoolResult> results_;
  int running_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace hstujit
