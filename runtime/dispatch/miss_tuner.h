// Tuning because of a miss, under the policy "tune": what a launch asks, and who answers.
//
// The tuner is in libhstujit_operations.so, so that a process that never tunes need not have it. An engine of that
// library has the tuner itself (EngineOptions::tuner).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "compiler/plan/search_space.h"
#include "runtime/dispatch/bench_problem.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/engine/engine.h"

namespace hstujit {

// A key, and the problem that its candidates are timed with.
struct TuningRequest {
  BenchProblem problem;
  ProblemBucket bucket = 0;
  Restriction restriction = {};
};

// The problem has the instance's lengths at the bucket's max_seq_len (tuning_lengths of problem_bucket.h).
TuningRequest tuning_request(const Instance& instance, Direction direction, int ordinal, const DeviceSpec& device,
                             const ProblemBucket& bucket, const Restriction& restriction);

nlohmann::ordered_json to_json(const TuningRequest& request);
// kInvalidArgument or kInvalidConfig with what is wrong.
Result<TuningRequest> parse_tuning_request(const nlohmann::ordered_json& json);

// Tunes one key with a small budget, because somebody waits for a launch. Any number of threads may call it at once.
class MissTuner {
 public:
  virtual ~MissTuner() = default;
  virtual Status tune(Engine& engine, const TuningRequest& request) const = 0;
};

// Asks the engine's tuner, or that of libhstujit_operations.so, where no usable winner is known. What keeps it from
// tuning, such as memory that is used up or a library that is missing, is logged and no failure: the key stays untuned.
// kCheckFailed: the heuristic's kernel is wrong.
Status tune_on_miss(Engine& engine, const TuningRequest& request);

}  // namespace hstujit
