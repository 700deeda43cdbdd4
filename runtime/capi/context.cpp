// Contexts.
#include <cstddef>
#include <exception>

#include "runtime/capi/boundary.h"
#include "runtime/capi/callbacks.h"
#include "runtime/capi/kept_ops.h"
#include "runtime/operations/operation.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

Status read_options(const hstujit_context_options* from, EngineOptions* options) {
  HSTUJIT_ASSIGN_OR_RETURN(const auto given, read_struct("hstujit_context_options", from, kFirstContextOptions));
  if (given.cache_dir != nullptr && *given.cache_dir != 0) options->cache_dir = given.cache_dir;
  if (given.cache_path != nullptr) options->cache_path = given.cache_path;
  switch (const int on_miss = number_of(given.on_miss)) {
    case HSTUJIT_ON_MISS_DEFAULT:
      break;
    case HSTUJIT_ON_MISS_HEURISTIC:
      options->on_miss = MissPolicy::kHeuristic;
      break;
    case HSTUJIT_ON_MISS_TUNE:
      options->on_miss = MissPolicy::kTune;
      break;
    case HSTUJIT_ON_MISS_FAIL:
      options->on_miss = MissPolicy::kFail;
      break;
    default:
      return Status(Code::kInvalidArgument,
                    "on_miss is " + std::to_string(on_miss) + "; it must be a hstujit_miss_policy, 0 to 3");
  }
  if (given.deterministic != 0 && given.deterministic != 1) {
    return Status(Code::kInvalidArgument,
                  "deterministic is " + std::to_string(given.deterministic) + "; it must be 0 or 1");
  }
  options->deterministic = given.deterministic == 1;
  if (given.log != nullptr) {
    options->log = [log = given.log, user = given.log_user](LogCategory category, const std::string& line) {
      const Callback callback;
      if (!callback.is_open()) return;
      try {
        log(user, std::string(to_string(category)).c_str(), line.c_str());
      } catch (const std::exception&) {  // no caller on this thread expects it, and the work goes on
      }
    };
  }
  return {};
}

}  // namespace

extern "C" {

hstujit_status hstujit_context_create(const hstujit_context_options* options, hstujit_context** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the handle goes");
    EngineOptions engine_options;
    if (options != nullptr) HSTUJIT_RETURN_IF_ERROR(read_options(options, &engine_options));
    HSTUJIT_ASSIGN_OR_RETURN(EnginePtr engine, Engine::create(std::move(engine_options)));
    *out = new hstujit_context{std::move(engine), std::make_shared<KeptOps>()};
    return {};
  });
}

void hstujit_context_destroy(hstujit_context* context) { delete context; }

hstujit_status hstujit_doctor(hstujit_context* context, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(out, "where the text goes");
    return give_report(doctor(*context->engine), out);
  });
}

hstujit_status hstujit_diagnose(const hstujit_context_options* options, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    EngineOptions engine_options;
    if (options != nullptr) HSTUJIT_RETURN_IF_ERROR(read_options(options, &engine_options));
    engine_options.diagnose = true;
    HSTUJIT_ASSIGN_OR_RETURN(const EnginePtr engine, Engine::create(std::move(engine_options)));
    return give_report(doctor(*engine), out);
  });
}

}  // extern "C"
