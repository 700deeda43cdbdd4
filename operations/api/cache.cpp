// The cache behind a context: what is in it, checking, bounding and carrying it elsewhere.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "autotune_cache/store/bundle_transfer.h"
#include "compiler/spec/step_operators.h"
#include "compiler/support/file_kind.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/numbers.h"
#include "compiler/support/text.h"
#include "operations/api/operations_api.h"
#include "runtime/capi/boundary.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

// A file of another kind is not replaced, nor a bundle that the cache consists of.
Status check_place_of_bundle(const std::string& path, const CacheLayers& layers) {
  HSTUJIT_RETURN_IF_ERROR(check_output(path));
  const Result<FileHead> there = read_file_head(path, kFileKindBytes);
  if (!there.ok()) return there.status().code() == Code::kNotFound ? Status() : there.status();
  const auto refused = [&path](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("path is {}; {}", quote(path), why));
  };
  if (there->size > 0 && file_kind(there->bytes) != FileKind::kBundle)
    return refused("the existing file is not a bundle, and is not replaced");
  for (const auto& layer : layers) {
    std::error_code error;
    if (std::filesystem::equivalent(path, layer->path(), error)) return refused("it is read, and would be lost");
  }
  return {};
}

Status prune(hstujit_context* context, const PruneRequest& request, hstujit_text* report) {
  HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
  HSTUJIT_REQUIRE(report, "where the text goes");
  const PruneReport pruned = context->engine->kernels().store().prune(request);
  const Json json = {{"removed", pruned.removed},         {"removed_bytes", pruned.removed_bytes},
                     {"not_removed", pruned.not_removed}, {"kept", pruned.kept},
                     {"kept_bytes", pruned.kept_bytes},   {"leftovers", pruned.leftovers}};
  HSTUJIT_RETURN_IF_ERROR(give_report(json, report));
  HSTUJIT_RETURN_IF_ERROR(pruned.unread);
  if (pruned.not_removed == 0) return {};
  return Status(Code::kIo,
                fmt::format("{} could not be removed{}: {}", counted(pruned.not_removed, "kernel"),
                            pruned.not_removed == 1 ? "" : "; of the first", pruned.not_removed_why.message()));
}

// Where the entries of a directory come from: the names of doctor's report.
std::string_view role_of(Engine& engine, const std::string& directory) {
  if (directory == engine.kernels().store().directories().user) return "user";
  return directory == engine.shipped_records() ? "shipped" : "read_only";
}

Json kernels_json(Engine& engine, const std::vector<StoredArtifact>& artifacts) {
  Json kernels = Json::array();
  for (const StoredArtifact& artifact : artifacts) {
    const ArtifactMetadata& metadata = artifact.metadata;
    kernels.push_back({{"digest", artifact.digest},
                       {"directory", artifact.directory},
                       {"role", role_of(engine, artifact.directory)},
                       {"kernel", metadata.info.kernel},
                       {"arch", metadata.key.arch},
                       {"direction", metadata.key.direction},
                       {"spec", json_or_null(metadata.key.spec)},
                       {"config", json_or_null(metadata.key.config)},
                       {"nvrtc", metadata.info.nvrtc},
                       {"library", metadata.info.library},
                       {"resources", json_or_null(metadata.info.resources)},
                       {"bytes", artifact.bytes},
                       {"last_used", artifact.last_used}});
  }
  return kernels;
}

// The last fields of a record's or a choice's entry.
template <typename Key>
void write_restriction(Json& entry, const Key& key) {
  write_batch_class(entry, key.batch_class);
  if (key.deterministic) entry["deterministic"] = true;
}

Json records_json(Engine& engine, const std::vector<StoredRecord>& stored_records) {
  Json records = Json::array();
  for (const StoredRecord& stored : stored_records) {
    const TuningRecord& record = stored.record;
    records.push_back({{"digest", stored.digest},
                       {"directory", stored.directory},
                       {"role", role_of(engine, stored.directory)},
                       {"op", record.key.op},
                       {"spec", json_or_null(record.key.spec)},
                       {"direction", record.key.direction},
                       {"device", record.key.device},
                       {"bucket", record.key.bucket},
                       {"workload", record.workload},
                       {"winner", json_or_null(record.winner.text())},
                       {"timed", record.timed.size()},
                       {"rejected", record.rejected.size()},
                       {"environment", record.environment}});
    write_restriction(records.back(), record.key);
  }
  return records;
}

Json choices_json(const std::vector<StoredChoice>& stored_choices) {
  Json choices = Json::array();
  for (const StoredChoice& stored : stored_choices) {
    const ChoiceRecord& choice = stored.choice;
    choices.push_back({{"digest", stored.digest},
                       {"directory", stored.directory},
                       {"op", choice.key.op},
                       {"spec", json_or_null(choice.key.spec)},
                       {"direction", choice.key.direction},
                       {"device", choice.key.device},
                       {"bucket", choice.key.bucket},
                       {"config", json_or_null(choice.config.text())},
                       {"from", to_string(choice.source)},
                       {"exported", choice.exported}});
    write_restriction(choices.back(), choice.key);
  }
  return choices;
}

// The end of a sentence about a cache that has nothing to export.
std::string refused_text(const std::vector<VerifiedFile>& refused) {
  if (refused.empty()) return "";
  const VerifiedFile& first = refused.front();
  return fmt::format("; {} of it {} not used, {}{}: {}", counted(static_cast<int64_t>(refused.size()), "file"),
                     refused.size() == 1 ? "is" : "are", refused.size() == 1 ? "" : "such as ", quote(first.path),
                     first.problem);
}

}  // namespace

extern "C" {

hstujit_status hstujit_operations_cache_list(hstujit_context* context, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(report, "where the text goes");
    Engine& engine = *context->engine;
    HSTUJIT_ASSIGN_OR_RETURN(const auto artifacts, gather_whole(engine.kernels().store().layers(), &artifacts_of));
    HSTUJIT_ASSIGN_OR_RETURN(const auto records, gather_whole(engine.tuning().layers(), &records_of));
    HSTUJIT_ASSIGN_OR_RETURN(const auto choices, gather_whole(engine.tuning().layers(), &choices_of));
    uint64_t bytes = 0;
    for (const StoredArtifact& artifact : artifacts) bytes += artifact.bytes;
    Json not_read = Json::array();
    for (const VerifiedFile& folder : gather(engine.tuning().layers(), &folders_passed_over))
      not_read.push_back({{"path", as_utf8(folder.path)}, {"problem", folder.problem}});
    const Json json = {{"bytes", bytes},
                       {"kernels", kernels_json(engine, artifacts)},
                       {"tuning", records_json(engine, records)},
                       {"choices", choices_json(choices)},
                       {"not_read", std::move(not_read)}};
    return give_report(json, report);
  });
}

hstujit_status hstujit_operations_cache_verify(hstujit_context* context, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(report, "where the text goes");
    Json bad = Json::array();
    size_t files = 0;
    // The database's layers are the kernels' and the installed records.
    for (const VerifiedFile& file : gather(context->engine->tuning().layers(), &verify_layer)) {
      if (file.unread) return Status(Code::kOutOfMemory, file.problem + "; nothing is said about the cache");
      ++files;
      if (!file.problem.empty()) bad.push_back({{"path", as_utf8(file.path)}, {"problem", file.problem}});
    }
    const size_t count = bad.size();
    HSTUJIT_RETURN_IF_ERROR(give_report({{"files", files}, {"bad", std::move(bad)}}, report));
    if (count == 0) return {};
    return Status(Code::kCheckFailed,
                  fmt::format("{} of {} of the cache {} not what {} should be; the report names {}", count,
                              counted(static_cast<int64_t>(files), "file"), count == 1 ? "is" : "are",
                              count == 1 ? "it" : "they", count == 1 ? "it" : "them"));
  });
}

hstujit_status hstujit_operations_cache_prune(hstujit_context* context, uint64_t max_bytes, hstujit_text* report) {
  return guarded([&]() -> Status { return prune(context, {.max_bytes = max_bytes, .nvrtc = {}}, report); });
}

hstujit_status hstujit_operations_cache_prune_nvrtc(hstujit_context* context, const char* version,
                                                    hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(version, "a version of NVRTC");
    const std::vector<std::string> numbers = split(version, '.');
    const auto number = [&](size_t i) { return i < numbers.size() ? whole_number(numbers[i]) : std::nullopt; };
    const std::optional<uint64_t> major = number(0), minor = number(1);
    if (numbers.size() != 2 || !major || !minor) {
      return Status(
          Code::kInvalidArgument,
          fmt::format("version is {}; allowed: a version of NVRTC, two numbers such as 13.0", quote(version)));
    }
    return prune(context, {.max_bytes = {}, .nvrtc = fmt::format("{}.{}", *major, *minor)}, report);
  });
}

hstujit_status hstujit_operations_cache_export(hstujit_context* context, const char* path,
                                               const hstujit_cache_export_options* options, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(path, "the file to write");
    HSTUJIT_REQUIRE(report, "where the text goes");
    hstujit_cache_export_options given{};
    if (options != nullptr) {
      HSTUJIT_ASSIGN_OR_RETURN(given, read_struct("hstujit_cache_export_options", options, kFirstExportOptions));
    }
    std::vector<std::string> ops, steps;
    if (given.op != nullptr) {
      if (!is_operator(given.op)) return Status(Code::kInvalidArgument, unknown_operator("op", given.op).message());
      ops = steps = step_operators(given.op);
      ops.emplace_back(given.op);
    }
    Engine& engine = *context->engine;
    HSTUJIT_RETURN_IF_ERROR(check_place_of_bundle(path, engine.kernels().store().layers()));
    HSTUJIT_ASSIGN_OR_RETURN(const ExportedBundle exported,
                             export_bundle(engine.kernels().store().layers(), ops, engine.tuning().layers()));
    Json refused = Json::array();
    for (const VerifiedFile& file : exported.refused)
      refused.push_back({{"path", as_utf8(file.path)}, {"problem", file.problem}});
    // An empty bundle in the place of a good one would be a loss that nobody notices.
    if (exported.kernels + exported.records + exported.choices == 0) {
      return Status(
          Code::kNotFound,
          fmt::format("the cache has no kernel, no tuning record and no choice{}{}; nothing is exported to {}{}",
                      ops.empty() ? "" : " of " + ops.back(),
                      steps.empty() ? "" : fmt::format(" or of its steps, {}", fmt::join(steps, ", ")), quote(path),
                      refused_text(exported.refused)));
    }
    HSTUJIT_RETURN_IF_ERROR(write_file_atomically(path, exported.packed.bytes));
    const Json json = {{"path", path},
                       {"kernels", exported.kernels},
                       {"tuning", exported.records},
                       {"choices", exported.choices},
                       {"refused", std::move(refused)},
                       {"bytes", exported.packed.bytes.size()},
                       {"sha256", exported.packed.sha256}};
    return give_report(json, report);
  });
}

hstujit_status hstujit_operations_cache_import(hstujit_context* context, const char* path, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(path, "the bundle to read");
    HSTUJIT_REQUIRE(report, "where the text goes");
    Engine& engine = *context->engine;
    // The user who imports a file vouches for it; its digest is checked.
    const BundleLayer bundle(path, Trust::kAll, bundle_decoder(engine.environment()), engine.log());
    HSTUJIT_ASSIGN_OR_RETURN(const ImportReport imported,
                             import_bundle(bundle, engine.kernels().store(), engine.tuning()));
    const Json json = {{"path", path},
                       {"kernels", imported.kernels},
                       {"new_kernels", imported.new_kernels},
                       {"tuning", imported.records},
                       {"new_tuning", imported.new_records},
                       {"changed_tuning", imported.changed_records},
                       {"left_out", imported.left_out},
                       {"choices", imported.choices},
                       {"new_choices", imported.new_choices},
                       {"sha256", imported.sha256}};
    return give_report(json, report);
  });
}

}  // extern "C"
