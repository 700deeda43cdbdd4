#include "operations/tuning/tuner/tune_key.h"

#include <fmt/format.h>

#include "operations/tuning/data/workload.h"
#include "operations/tuning/timing/device_bench.h"
#include "operations/tuning/worker/worker_bench.h"
#include "operations/tuning/worker/worker_program.h"
#include "runtime/dispatch/bench_problem.h"
#include "runtime/dispatch/problem_bucket.h"

namespace hstujit {

namespace {

constexpr double kMissBudgetSeconds = 10;

BenchFactory worker_benches(const std::string& program, const BenchProblem& problem, const Cancellation& cancellation) {
  return [=]() -> Result<std::unique_ptr<CandidateBench>> {
    HSTUJIT_ASSIGN_OR_RETURN(auto bench, WorkerBench::open(program, to_json(problem), {}, cancellation));
    return std::unique_ptr<CandidateBench>(std::move(bench));
  };
}

BenchFactory benches_of_this_process(const CudaDriverPtr& driver, const BenchProblem& problem) {
  return [=, made = false]() mutable -> Result<std::unique_ptr<CandidateBench>> {
    if (made) {
      return Status(
          Code::kDriverError,
          fmt::format("a kernel broke the CUDA context of device {} in this process; only another process can "
                      "go on tuning there",
                      problem.ordinal));
    }
    made = true;
    HSTUJIT_ASSIGN_OR_RETURN(auto bench, DeviceBench::create(driver, problem.spec, problem.direction, problem.device,
                                                             problem.ordinal, problem.lengths, problem.alpha));
    return std::unique_ptr<CandidateBench>(std::move(bench));
  };
}

class Tuner final : public MissTuner {
 public:
  Status tune(Engine& engine, const TuningRequest& request) const override {
    TunerOptions options;
    options.budget_s = kMissBudgetSeconds;
    return tune_on_device(engine, request, options).status();
  }
};

}  // namespace

Result<TuneReport> tune_on_device(Engine& engine, const TuningRequest& request, const TunerOptions& options) {
  // Also where a worker opens its own: what is wrong with the driver is the caller's to know, not a worker's.
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine.driver());
  BenchProblem problem = request.problem;
  problem.cuda_driver = driver->path();
  const auto program = worker_program(engine.environment());
  engine.log().event(LogCategory::kTune, "bench",
                     {{"worker", program.value_or("none: candidates run in this process")}});
  const int64_t rows = has_max_seq_len(problem.spec->signature(problem.direction)) ? 0 : problem.lengths.total_rows();
  return tune_problem(
      engine,
      program ? worker_benches(*program, problem, options.cancellation) : benches_of_this_process(driver, problem),
      {problem.spec, problem.direction, problem.device, request.bucket, workload_name(problem.lengths),
       request.restriction, rows},
      options);
}

std::shared_ptr<const MissTuner> miss_tuner_of_this_library() { return std::make_shared<const Tuner>(); }

}  // namespace hstujit
