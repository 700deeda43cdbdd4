// Contexts and the cache behind them.
#include <cstddef>

#include "runtime/capi/boundary.h"
#include "runtime/operations/operation.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

Status read_options(const hstujit_context_options* from, EngineOptions* options) {
  HSTUJIT_ASSIGN_OR_RETURN(const auto given, read_struct("hstujit_context_options", from, kFirstContextOptions));
  if (given.cache_dir != nullptr) options->cache_dir = given.cache_dir;
  if (given.cache_path != nullptr) options->cache_path = given.cache_path;
  switch (given.on_miss) {
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
      return Status(Code::kInvalidArgument, "on_miss is " + std::to_string(static_cast<int>(given.on_miss)) +
                                                "; it must be a hstujit_miss_policy, 0 to 3");
  }
  if (given.log != nullptr) {
    options->log = [log = given.log, user = given.log_user](LogCategory category, const std::string& line) {
      log(user, std::string(to_string(category)).c_str(), line.c_str());
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
    *out = new hstujit_context{std::move(engine)};
    return {};
  });
}

void hstujit_context_destroy(hstujit_context* context) { delete context; }

hstujit_status hstujit_doctor(hstujit_context* context, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(out, "where the text goes");
    return give_text(doctor(*context->engine).dump(2), out);
  });
}

hstujit_status hstujit_cache_list(hstujit_context* context, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(report, "where the text goes");
    Json kernels = Json::array();
    uint64_t bytes = 0;
    for (const StoredArtifact& artifact : context->engine->kernels().store().list()) {
      const ArtifactMetadata& metadata = artifact.metadata;
      bytes += artifact.bytes;
      kernels.push_back({{"digest", artifact.digest},
                         {"directory", artifact.directory},
                         {"kernel", metadata.info.kernel},
                         {"arch", metadata.key.arch},
                         {"direction", metadata.key.direction},
                         {"spec", Json::parse(metadata.key.spec, nullptr, false)},
                         {"config", Json::parse(metadata.key.config, nullptr, false)},
                         {"nvrtc", metadata.info.nvrtc},
                         {"library", metadata.info.library},
                         {"resources", Json::parse(metadata.info.resources, nullptr, false)},
                         {"bytes", artifact.bytes},
                         {"last_used", artifact.last_used}});
    }
    Json records = Json::array();
    for (const StoredRecord& stored : context->engine->tuning().list()) {
      const TuningRecord& record = stored.record;
      records.push_back({{"digest", stored.digest},
                         {"directory", stored.directory},
                         {"op", record.key.op},
                         {"spec", Json::parse(record.key.spec, nullptr, false)},
                         {"direction", record.key.direction},
                         {"device", record.key.device},
                         {"bucket", record.key.bucket},
                         {"workload", record.workload},
                         {"winner", Json::parse(record.winner, nullptr, false)},
                         {"timed", record.timed.size()},
                         {"rejected", record.rejected.size()},
                         {"environment", record.environment}});
    }
    const Json json = {{"bytes", bytes}, {"kernels", std::move(kernels)}, {"tuning", std::move(records)}};
    return give_text(json.dump(2, ' ', false, Json::error_handler_t::replace), report);
  });
}

hstujit_status hstujit_cache_verify(hstujit_context* context, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(report, "where the text goes");
    Json bad = Json::array();
    size_t files = 0;
    for (const VerifiedFile& file : context->engine->kernels().store().verify()) {
      ++files;
      if (!file.problem.empty()) bad.push_back({{"path", file.path}, {"problem", file.problem}});
    }
    const size_t count = bad.size();
    HSTUJIT_RETURN_IF_ERROR(give_text(Json{{"files", files}, {"bad", std::move(bad)}}.dump(2), report));
    if (count == 0) return {};
    return Status(Code::kCheckFailed, std::to_string(count) + " of " + std::to_string(files) +
                                          " files of the cache are not what they should be; the report names them");
  });
}

hstujit_status hstujit_cache_prune(hstujit_context* context, uint64_t max_bytes, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(report, "where the text goes");
    PruneRequest request;
    request.max_bytes = max_bytes;
    const PruneReport pruned = context->engine->kernels().store().prune(request);
    const Json json = {{"removed", pruned.removed},
                       {"removed_bytes", pruned.removed_bytes},
                       {"kept", pruned.kept},
                       {"kept_bytes", pruned.kept_bytes},
                       {"leftovers", pruned.leftovers}};
    return give_text(json.dump(2), report);
  });
}

hstujit_status hstujit_cache_path(hstujit_context* context, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(out, "where the text goes");
    return give_text(context->engine->kernels().store().directories().user, out);
  });
}

}  // extern "C"
