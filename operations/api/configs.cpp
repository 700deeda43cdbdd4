// Work on whole configs.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "autotune_cache/store/layers_passed_over.h"
#include "compiler/spec/limits.h"
#include "compiler/support/run_limits.h"
#include "operations/api/operations_api.h"
#include "operations/configs/operation.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/callbacks.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

static_assert(kMaxRowsOfRun == kMaxSeqLen);

std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : text; }

// `thrown` receives the sentence about an exception of the progress callback. It outlives the options.
Result<OperationOptions> read_options(const hstujit_run_options* from, std::string& thrown) {
  OperationOptions options;
  if (from == nullptr) return options;
  HSTUJIT_ASSIGN_OR_RETURN(const auto given, read_struct("hstujit_run_options", from, kFirstRunOptions));
  const auto refuse = [](const char* name, const auto value, const std::string& allowed) {
    return Status(Code::kInvalidArgument, fmt::format("{} is {}; it must be {}", name, value, allowed));
  };
  const auto up_to = [](const char* from, int64_t most) { return std::string(from) + " to " + std::to_string(most); };
  if (given.jobs < 0) return refuse("jobs", given.jobs, "0 (as many as HSTUJIT_COMPILE_JOBS) or more");
  if (!(given.budget_s >= 0 && given.budget_s <= static_cast<double>(kMaxBudgetSeconds)))
    return refuse("budget_s", given.budget_s, up_to("from 0 (the config's)", kMaxBudgetSeconds) + " seconds");
  if (given.device < 0) return refuse("device", given.device, "a CUDA ordinal, 0 or more");
  if (given.repeats < 0 || given.repeats > kMaxRepeats)
    return refuse("repeats", given.repeats, up_to("from 0 (bench: 50, run: 1)", kMaxRepeats));
  if (given.max_rows < 0 || given.max_rows > kMaxRowsOfRun)
    return refuse("max_rows", given.max_rows, up_to("from 0 (all)", kMaxRowsOfRun));
  const int backend = number_of(given.backend);
  if (backend != HSTUJIT_BACKEND_CUDA && backend != HSTUJIT_BACKEND_HOST)
    return refuse("backend", backend, "HSTUJIT_BACKEND_CUDA (0) or HSTUJIT_BACKEND_HOST (1)");
  if (given.check != 0 && given.check != 1) return refuse("check", given.check, "0 or 1");
  if (given.shard_count < 0 || given.shard_count > HSTUJIT_MAX_SHARDS)
    return refuse("shard_count", given.shard_count,
                  "0 (no shards) or more, HSTUJIT_MAX_SHARDS (" + std::to_string(HSTUJIT_MAX_SHARDS) + ") at most");
  if (given.shard_index < 0 || given.shard_index >= std::max(given.shard_count, 1)) {
    return refuse("shard_index", given.shard_index, "0 or more, and less than shard_count");
  }
  options.shard = {given.shard_index, std::max(given.shard_count, 1)};
  options.arch = text_or_empty(given.arch);
  options.op_name = text_or_empty(given.op_name);
  options.jobs = given.jobs;
  options.budget_s = given.budget_s;
  options.backend = backend == HSTUJIT_BACKEND_HOST ? Backend::kHost : Backend::kCuda;
  options.check = given.check != 0;
  options.device = given.device;
  options.repeats = given.repeats;
  options.directory = text_or_empty(given.directory);
  options.seed = given.seed;
  options.max_rows = given.max_rows;
  options.cancellation = Cancellation(given.cancel);
  if (given.progress != nullptr) {
    options.progress = [&thrown, progress = given.progress, user = given.progress_user,
                        cancellation = options.cancellation](size_t done, size_t total, const std::string& what) {
      const Callback callback;
      if (!callback.is_open() || !thrown.empty()) return;
      try {
        progress(user, done, total, what.c_str());
      } catch (const std::exception& error) {  // of others, the end of a thread must pass
        thrown = fmt::format("the progress callback threw an exception: {}", error.what());
        cancellation.cancel();
      }
    };
  }
  return options;
}

// The first failure, how many more the report has, and what of the cache was not looked into, where that misses.
Status summary_of(const OperationResult& result, const CacheLayers& layers) {
  if (result.status.ok()) return {};
  std::string message = result.status.message();
  if (result.failures > 1) message += fmt::format("; and {} more in the report", result.failures - 1);
  if (result.status.code() == Code::kCacheMiss) message += passed_over_text(layers);
  return Status(result.status.code(), std::move(message));
}

// `operation` takes the engine, the config's handle and the options, and returns an OperationResult.
template <typename Operation>
hstujit_status operate(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* given,
                       hstujit_text* report, const Operation& operation) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(config, "a handle of hstujit_config_load or hstujit_config_parse");
    HSTUJIT_REQUIRE(report, "where the text goes");
    std::string thrown;
    HSTUJIT_ASSIGN_OR_RETURN(const OperationOptions options, read_options(given, thrown));
    OperationResult result = operation(context->engine, *config, options);
    const CacheLayers& layers = context->engine->kernels().store().layers();
    if (!result.report.empty()) {  // an empty one says that nothing was done
      for (const VerifiedFile& layer : layers_passed_over(layers))
        result.report["passed_over"].push_back({{"path", layer.path}, {"problem", layer.problem}});
    }
    HSTUJIT_RETURN_IF_ERROR(give_report(result.report, report));
    return thrown.empty() ? summary_of(result, layers) : Status(kCancelled, std::move(thrown));
  });
}

// All operations but tuning.
template <typename Operation>
hstujit_status operate_on_config(hstujit_context* context, const hstujit_config* config,
                                 const hstujit_run_options* given, hstujit_text* report, const Operation& operation) {
  return operate(context, config, given, report,
                 [&](const EnginePtr& engine, const hstujit_config& handle, const OperationOptions& options) {
                   if (Status refused = refuse_recording(handle); !refused.ok()) {
                     return OperationResult{Json::object(), std::move(refused)};
                   }
                   return operation(engine, handle.config, options);
                 });
}

}  // namespace

extern "C" {

hstujit_status hstujit_operations_prewarm(hstujit_context* context, const hstujit_config* config,
                                          const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(
      context, config, options, report,
      [](const EnginePtr& engine, const Config& c, const OperationOptions& o) { return prewarm(*engine, c, o); });
}

hstujit_status hstujit_operations_tune(hstujit_context* context, const hstujit_config* config,
                                       const hstujit_run_options* options, hstujit_text* report) {
  return operate(context, config, options, report,
                 [](const EnginePtr& engine, const hstujit_config& c, const OperationOptions& o) {
                   return c.recording ? tune_recording(*engine, *c.recording, o) : tune(*engine, c.config, o);
                 });
}

hstujit_status hstujit_operations_run(hstujit_context* context, const hstujit_config* config,
                                      const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(context, config, options, report, run);
}

hstujit_status hstujit_operations_bench(hstujit_context* context, const hstujit_config* config,
                                        const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(context, config, options, report, bench);
}

hstujit_status hstujit_operations_emit(hstujit_context* context, const hstujit_config* config,
                                       const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(
      context, config, options, report,
      [](const EnginePtr& engine, const Config& c, const OperationOptions& o) { return emit(*engine, c, o); });
}

hstujit_status hstujit_operations_freeze(hstujit_context* context, const hstujit_config* config,
                                         const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(
      context, config, options, report,
      [](const EnginePtr& engine, const Config& c, const OperationOptions& o) { return freeze(*engine, c, o); });
}

hstujit_status hstujit_operations_explain(hstujit_context* context, const hstujit_config* config,
                                          const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(
      context, config, options, report,
      [](const EnginePtr& engine, const Config& c, const OperationOptions& o) { return explain(*engine, c, o); });
}

hstujit_status hstujit_operations_check(hstujit_context* context, const hstujit_config* config,
                                        const hstujit_run_options* options, hstujit_text* report) {
  return operate_on_config(
      context, config, options, report,
      [](const EnginePtr& engine, const Config& c, const OperationOptions& o) { return check(*engine, c, o); });
}

}  // extern "C"
