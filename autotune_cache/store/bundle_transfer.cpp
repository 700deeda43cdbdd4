#include "autotune_cache/store/bundle_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "autotune_cache/files/checked_json.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// The operator that a kernel is of; its key has it in the spec.
std::string op_of(const ArtifactKey& key) { return text_member(json_or_null(key.spec), "op"); }

// Whether entries of `op` are among those that are asked for.
bool is_wanted(const std::vector<std::string>& ops, const std::string& op) {
  return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

// `reason`: why it was not written, or why what was written cannot be read.
Status not_kept(const BundleLayer& bundle, const std::string& directory, std::string_view what,
                const std::string& reason) {
  return Status(Code::kIo, fmt::format("{} of the bundle {} cannot be kept in the cache directory {}: {}", what,
                                       quote(bundle.path()), quote(directory), reason));
}

// Why an entry cannot be kept; empty where it was written. `found`: what a look-up finds of it afterwards. Others may
// have removed or replaced it by then, which is no failure to keep it.
std::string why_not_kept(const TuningDatabase& database, const std::string& digest, const Status& found) {
  if (std::string reason = database.why_not_kept(digest); !reason.empty()) return reason;
  return found.code() == Code::kNotFound ? std::string() : found.message();
}

using Files = std::map<std::string, std::string>;  // contents by name

// Whether it was made without asking any record.
bool is_frozen(const ChoiceRecord& choice) { return kind_of(choice.source) == ChoiceKind::kFrozen; }

// Whether it is that of one process alone: earlier libraries noted those.
bool is_of_a_process(const ChoiceRecord& choice) { return kind_of(choice.source) == ChoiceKind::kOverride; }

// The status of what the system fails to read (is_system_failure): nothing is put in its place, and nothing done
// without it.
Status unread(const Status& status, const std::string& directory, std::string_view what) {
  return status.with_context(
      fmt::format("{} of the cache directory {} cannot be read, and stays", what, quote(directory)));
}

// Whether a look-up of the choice's key finds a tuning record with another winner before it asks what made the choice.
// An exported one decides in its own layer.
Result<bool> is_overtaken(const StoredChoice& stored, const CacheLayers& consulted) {
  const ChoiceRecord& choice = stored.choice;
  if (is_frozen(choice) && !choice.exported) return false;
  const std::string digest = tuning_digest(choice.key);
  for (const CacheLayerPtr& layer : consulted) {
    if (choice.exported && layer->path() == stored.directory) return false;
    if (layer->remote()) continue;
    const Result<TuningRecord> record = layer->find_record(digest);
    if (is_system_failure(record.status())) return record.status();
    if (record.ok() && !record->winner.empty()) return record->winner != choice.config;
  }
  return false;
}

// Exports, of several for one key, those that decide on this machine, too, before those that it has only noted.
Result<int64_t> export_choices(const CacheLayers& layers, const std::vector<std::string>& ops,
                               const CacheLayers& consulted, Files& files) {
  int64_t count = 0;
  HSTUJIT_ASSIGN_OR_RETURN(std::vector<StoredChoice> all, gather_whole(layers, &choices_of));
  std::stable_partition(all.begin(), all.end(),
                        [](const StoredChoice& stored) { return stored.choice.exported || is_frozen(stored.choice); });
  for (const StoredChoice& stored : all) {
    if (is_of_a_process(stored.choice) || !is_wanted(ops, stored.choice.key.op)) continue;
    HSTUJIT_ASSIGN_OR_RETURN(const bool overtaken, is_overtaken(stored, consulted));
    if (overtaken) continue;
    ChoiceRecord choice = stored.choice;
    choice.exported = true;
    HSTUJIT_ASSIGN_OR_RETURN(std::string text, format_choice(choice));
    if (files.emplace(choice_file(kNoRoot, stored.digest).native(), std::move(text)).second) ++count;
  }
  return count;
}

// Keeps the directory's own findings: no choice of the bundle is put before another winner of its own.
Status import_choices(const BundleLayer& bundle, const CacheLayer& user, TuningDatabase& database,
                      ImportReport& report) {
  Status failure;
  const std::vector<StoredChoice> choices = bundle.choices(&failure);
  HSTUJIT_RETURN_IF_ERROR(failure);
  for (const StoredChoice& stored : choices) {
    if (is_of_a_process(stored.choice)) continue;
    ++report.choices;
    const Result<ChoiceRecord> before = user.find_choice(stored.digest);
    if (before.ok() && *before == stored.choice) continue;
    const std::string record = tuning_digest(stored.choice.key);
    const Result<TuningRecord> own = user.find_record(record);
    if (is_system_failure(own.status()))
      return unread(own.status(), user.path(), fmt::format("the tuning record {}", record));
    if (own.ok() && !own->winner.empty() && own->winner != stored.choice.config) continue;
    database.keep_choice(stored.choice);
    const Status after = user.find_choice(stored.digest).status();
    if (const std::string reason = why_not_kept(database, stored.digest, after); !reason.empty())
      return not_kept(bundle, user.path(), fmt::format("the choice {}", stored.digest), reason);
    ++report.new_choices;
  }
  return {};
}

// Files of the layer that a look-up passes over, where no other layer has filled their place in `files`. Those of a
// writer that was interrupted were never an entry.
std::vector<VerifiedFile> refused_files(const CacheLayer& layer, const Files& files) {
  std::vector<VerifiedFile> refused;
  for (VerifiedFile& file : verify_layer(layer)) {
    if (file.problem.empty() || is_abandoned_temporary(file.path)) continue;
    if (!files.contains(std::filesystem::path(file.path).lexically_relative(layer.path()).native()))
      refused.push_back(std::move(file));
  }
  return refused;
}

}  // namespace

Result<ExportedBundle> export_bundle(const CacheLayers& layers, const std::vector<std::string>& ops,
                                     const CacheLayers& consulted) {
  ExportedBundle exported;
  Files files;
  Status failure;
  for (const CacheLayerPtr& layer : layers) {
    if (const std::vector<VerifiedFile> folders = folders_passed_over(*layer); !folders.empty()) {
      return Status(folders.front().unread ? Code::kOutOfMemory : Code::kIo,
                    fmt::format("{} is not read: {}; a bundle would lack what it holds", quote(folders.front().path),
                                folders.front().problem));
    }
    for (const StoredArtifact& stored : artifacts_of(*layer, &failure)) {
      const ArtifactKey& key = stored.metadata.key;
      const ArtifactFiles names(kNoRoot, key.arch, stored.digest);
      if (files.contains(names.metadata.native()) || !is_wanted(ops, op_of(key))) continue;
      Result<LoadedArtifact> loaded = layer->find_artifact(key.arch, stored.digest);
      if (!loaded.ok() && is_system_failure(loaded.status())) return loaded.status();
      if (!loaded.ok()) continue;  // as a look-up would pass over it; verify names it
      HSTUJIT_ASSIGN_OR_RETURN(std::string text, format_metadata(loaded->metadata));
      files.emplace(names.metadata.native(), std::move(text));
      files.emplace(names.cubin.native(), std::move(loaded->cubin));
      ++exported.kernels;
    }
    for (const StoredRecord& stored : records_of(*layer, &failure)) {
      if (!is_wanted(ops, stored.record.key.op)) continue;
      HSTUJIT_ASSIGN_OR_RETURN(std::string text, format_record(stored.record));
      const std::string name = record_file(kNoRoot, stored.digest).native();
      if (files.emplace(name, std::move(text)).second) ++exported.records;
    }
  }
  // A bundle that lacks what could not be read for the moment would look whole.
  HSTUJIT_RETURN_IF_ERROR(failure);
  HSTUJIT_ASSIGN_OR_RETURN(exported.choices, export_choices(layers, ops, consulted, files));
  for (const CacheLayerPtr& layer : layers) {
    std::vector<VerifiedFile> refused = refused_files(*layer, files);
    std::ranges::move(refused, std::back_inserter(exported.refused));
  }
  HSTUJIT_ASSIGN_OR_RETURN(exported.packed, pack_bundle(files));
  return exported;
}

namespace {

Status import_kernels(const BundleLayer& bundle, const CacheLayer& user, ArtifactStore& store, ImportReport& report) {
  Status failure;
  const std::vector<StoredArtifact> kernels = bundle.artifacts(&failure);
  HSTUJIT_RETURN_IF_ERROR(failure);
  for (const StoredArtifact& stored : kernels) {
    const ArtifactMetadata& metadata = stored.metadata;
    const std::string what = fmt::format("the kernel {}", stored.digest);
    ++report.kernels;
    const Status before = user.find_artifact(metadata.key.arch, stored.digest).status();
    if (before.ok()) continue;
    if (is_system_failure(before)) return unread(before, user.path(), what);
    const Result<LoadedArtifact> loaded = bundle.find_artifact(metadata.key.arch, stored.digest);
    if (!loaded.ok()) return not_kept(bundle, user.path(), what, loaded.status().message());
    if (!store.put(metadata.key, loaded->cubin, metadata.info))
      return not_kept(bundle, user.path(), what, store.why_not_kept(stored.digest));
    ++report.new_kernels;
  }
  return {};
}

Status import_records(const BundleLayer& bundle, const CacheLayer& user, TuningDatabase& database,
                      ImportReport& report) {
  Status failure;
  const std::vector<StoredRecord> records = bundle.records(&failure);
  HSTUJIT_RETURN_IF_ERROR(failure);
  for (const StoredRecord& stored : records) {
    const std::string what = fmt::format("the tuning record {}", stored.digest);
    ++report.records;
    const Result<TuningRecord> before = user.find_record(stored.digest);
    if (before.ok() && *before == stored.record) continue;
    if (is_system_failure(before.status())) return unread(before.status(), user.path(), what);
    // Findings of this directory count as the newer ones, and so does its winner, unless that is one of few rows.
    TuningRecord joined = stored.record;
    size_t left_out = 0;
    if (before.ok()) {
      HSTUJIT_ASSIGN_OR_RETURN(joined, merge_records(stored.record, *before, &left_out));
    }
    HSTUJIT_ASSIGN_OR_RETURN(const TuningRecord merged, database.add(joined));
    const Result<TuningRecord> after = user.find_record(stored.digest);
    if (const std::string reason = why_not_kept(database, stored.digest, after.status()); !reason.empty())
      return not_kept(bundle, user.path(), what, reason);
    report.left_out += static_cast<int64_t>(left_out);
    if (!before.ok()) {
      ++report.new_records;
    } else if (*before != (after.ok() ? *after : merged)) {
      ++report.changed_records;
    }
  }
  return {};
}

}  // namespace

Result<ImportReport> import_bundle(const BundleLayer& bundle, ArtifactStore& store, TuningDatabase& database) {
  HSTUJIT_RETURN_IF_ERROR(bundle.health());
  for (const VerifiedFile& file : bundle.verify()) {
    if (file.problem.empty()) continue;
    return Status(file.unread ? Code::kOutOfMemory : Code::kIo,
                  fmt::format("{}: {}; nothing is imported", quote(file.path), file.problem));
  }
  if (store.layers().empty() || !store.layers().front()->writable()) {
    return Status(
        Code::kInvalidArgument,
        "there is no cache directory to import into: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset");
  }
  const CacheLayer& user = *store.layers().front();
  ImportReport report;
  report.sha256 = bundle.sha256();
  HSTUJIT_RETURN_IF_ERROR(import_kernels(bundle, user, store, report));
  // Before the records: those that are there now are the directory's own.
  HSTUJIT_RETURN_IF_ERROR(import_choices(bundle, user, database, report));
  HSTUJIT_RETURN_IF_ERROR(import_records(bundle, user, database, report));
  return report;
}

}  // namespace hstujit
