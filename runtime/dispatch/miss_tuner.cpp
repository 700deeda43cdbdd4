#include "runtime/dispatch/miss_tuner.h"

#include <fmt/format.h>

#include "compiler/support/json.h"
#include "operations/api/operations_api.h"
#include "runtime/dispatch/kernel_choice.h"
#include "runtime/engine/operations_library.h"

namespace hstujit {

namespace {

Status tune(Engine& engine, const TuningRequest& request) {
  if (engine.tuner() != nullptr) return engine.tuner()->tune(engine, request);
  HSTUJIT_ASSIGN_OR_RETURN(const OperationsPtr operations, engine.operations());
  return operations->call<decltype(hstujit_operations_tune_key)>("hstujit_operations_tune_key",
                                                                 dump_json(to_json(request)).c_str());
}

}  // namespace

TuningRequest tuning_request(const Instance& instance, Direction direction, int ordinal, const DeviceSpec& device,
                             const ProblemBucket& bucket, const Restriction& restriction) {
  return {{"", instance.spec, direction, device, ordinal, tuning_lengths(instance, direction, bucket, device),
           instance.alpha},
          bucket,
          restriction};
}

nlohmann::ordered_json to_json(const TuningRequest& request) {
  Json json = {{"problem", to_json(request.problem)},
               {"bucket", request.bucket.rows},
               {"deterministic", request.restriction.deterministic}};
  write_batch_class(json, request.bucket.batch_class);
  return json;
}

Result<TuningRequest> parse_tuning_request(const nlohmann::ordered_json& json) {
  TuningRequest request;
  try {
    HSTUJIT_ASSIGN_OR_RETURN(request.problem, parse_bench_problem(json.at("problem")));
    request.bucket = {json.at("bucket").get<int64_t>(), batch_class_from(json)};
    request.restriction.deterministic = json.at("deterministic").get<bool>();
  } catch (const Json::exception& error) {
    return Status(Code::kInvalidArgument, fmt::format("a key to be tuned: {}", error.what()));
  }
  return request;
}

Status tune_on_miss(Engine& engine, const TuningRequest& request) {
  const BenchProblem& problem = request.problem;
  const TuningKey key =
      tuning_key(*problem.spec, problem.direction, problem.device, request.bucket, request.restriction);
  return engine.tunings().run(tuning_digest(key), [&]() -> Status {
    // Somebody else may be done meanwhile. A record alone does not say so: its winner may be one that is refused.
    HSTUJIT_ASSIGN_OR_RETURN(
        const KernelChoice choice,
        choose_kernel(engine, *problem.spec, problem.direction, problem.device, request.bucket, request.restriction));
    if (choice.tuned) return {};
    Status status = engine.stats().tunings.run([&] { return tune(engine, request); });
    if (status.ok() || status.code() == Code::kCheckFailed) return status;
    // A caller who waits for a launch needs a kernel more than the best one.
    engine.log().event(LogCategory::kTune, "miss-not-tuned",
                       {{"op", problem.spec->op()},
                        {"direction", to_string(problem.direction)},
                        {"bucket", to_string(request.bucket)},
                        {"reason", status.message()}});
    return {};
  });
}

}  // namespace hstujit
