#include "runtime/capi/context_options.h"

#include <exception>

#include "runtime/capi/boundary.h"
#include "runtime/capi/callbacks.h"

namespace hstujit::capi {

Status read_context_options(const hstujit_context_options* from, EngineOptions* options) {
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

}  // namespace hstujit::capi
