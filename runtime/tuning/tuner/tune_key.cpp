#include "runtime/tuning/tuner/tune_key.h"

#include <fmt/format.h>

#include "runtime/dispatch/kernel_choice.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/tuning/data/workload.h"
#include "runtime/tuning/timing/device_bench.h"
#include "runtime/tuning/worker/worker_bench.h"
#include "runtime/tuning/worker/worker_problem.h"

namespace hstujit {

namespace {

constexpr double kMissBudgetSeconds = 10;

BenchFactory worker_benches(const std::string& program, const WorkerProblem& problem,
                            const Cancellation& cancellation) {
  return [=]() -> Result<std::unique_ptr<CandidateBench>> {
    HSTUJIT_ASSIGN_OR_RETURN(auto bench, WorkerBench::open(program, to_json(problem), {}, cancellation));
    return std::unique_ptr<CandidateBench>(std::move(bench));
  };
}

BenchFactory benches_of_this_process(const CudaDriverPtr& driver, const WorkerProblem& problem) {
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

}  // namespace

Result<TuneReport> tune_on_device(Engine& engine, const Instance& instance, Direction direction, int ordinal,
                                  const DeviceSpec& device, const ProblemBucket& bucket, const Restriction& restriction,
                                  const TunerOptions& options) {
  // Also where a worker opens its own: what is wrong with the driver is the caller's to know, not a worker's.
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine.driver());
  const Lengths lengths = tuning_lengths(instance, direction, bucket, device);
  const WorkerProblem problem{driver->path(), instance.spec, direction, device, ordinal, lengths, instance.alpha};
  const auto program = worker_program(engine.environment());
  engine.log().event(LogCategory::kTune, "bench",
                     {{"worker", program.value_or("none: candidates run in this process")}});
  const int64_t rows = has_max_seq_len(instance.spec->signature(direction)) ? 0 : lengths.total_rows();
  return tune_problem(
      engine,
      program ? worker_benches(*program, problem, options.cancellation) : benches_of_this_process(driver, problem),
      {instance.spec, direction, device, bucket, workload_name(lengths), restriction, rows}, options);
}

Status tune_on_miss(Engine& engine, const Instance& instance, Direction direction, int ordinal,
                    const DeviceSpec& device, const ProblemBucket& bucket, const Restriction& restriction) {
  TunerOptions options;
  options.budget_s = kMissBudgetSeconds;
  const TuningKey key = tuning_key(*instance.spec, direction, device, bucket, restriction);
  return engine.tunings().run(tuning_digest(key), [&]() -> Status {
    // Somebody else may be done meanwhile. A record alone does not say so: its winner may be one that is refused.
    HSTUJIT_ASSIGN_OR_RETURN(const KernelChoice choice,
                             choose_kernel(engine, *instance.spec, direction, device, bucket, restriction));
    if (choice.tuned) return {};
    Status status = tune_on_device(engine, instance, direction, ordinal, device, bucket, restriction, options).status();
    if (status.ok() || status.code() == Code::kCheckFailed) return status;
    // Whoever waits for a launch needs a kernel more than the best one.
    engine.log().event(LogCategory::kTune, "miss-not-tuned",
                       {{"op", instance.spec->op()},
                        {"direction", to_string(direction)},
                        {"bucket", to_string(bucket)},
                        {"reason", status.message()}});
    return {};
  });
}

}  // namespace hstujit
