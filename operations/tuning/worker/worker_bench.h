// Candidates in a process of their own: what a kernel does to its process, it does to the worker.
//
// The worker holds the device context, the data and the loaded candidates. When it dies or does not answer in time, it
// is killed and this bench is lost: every later call fails. The tuner then makes another one.
#pragma once

#include <memory>

#include "operations/tuning/timing/candidate_bench.h"
#include "operations/tuning/worker/worker_process.h"

namespace hstujit {

// How long a worker may take for each request before it counts as hung.
struct WorkerLimits {
  std::chrono::milliseconds open{120'000};  // driver, context, inputs and the float64 answer
  std::chrono::milliseconds load{30'000};
  std::chrono::milliseconds validate{20'000};
  std::chrono::milliseconds time{20'000};
};

class WorkerBench final : public CandidateBench {
 public:
  // `problem` goes to the worker as it is (operations/tuning/worker/worker_server.h). Failure: the program's, or
  // whatever the worker answers.
  static Result<std::unique_ptr<WorkerBench>> open(const std::string& program, const nlohmann::ordered_json& problem,
                                                   const WorkerLimits& limits = {},
                                                   const Cancellation& cancellation = {});

  Result<int> load(const CompiledCandidate& candidate) override;
  void unload(int number) override;
  Status validate(int number) override;
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats) override;
  BenchState state() override { return state_; }
  int culprit() const override { return launched_; }

  pid_t process() const { return worker_.id(); }

 private:
  WorkerBench(WorkerProcess worker, const WorkerLimits& limits) : worker_(std::move(worker)), limits_(limits) {}

  // The worker's answer, or why there is none. Launches that it tells of on the way are kept in launched_.
  Result<nlohmann::ordered_json> ask(const WorkerMessage& request, std::chrono::milliseconds limit);

  WorkerProcess worker_;
  WorkerLimits limits_;
  BenchState state_ = BenchState::kSound;
  int launched_ = 0;  // by time(), last
};

}  // namespace hstujit
