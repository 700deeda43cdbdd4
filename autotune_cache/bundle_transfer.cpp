#include "autotune_cache/bundle_transfer.h"

#include <fmt/format.h>

#include "autotune_cache/checked_json.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// The operator that a kernel is of; its key has it in the spec.
std::string op_of(const ArtifactKey& key) {
  return text_member(nlohmann::ordered_json::parse(key.spec, nullptr, false), "op");
}

Status not_kept(const BundleLayer& bundle, const std::string& directory, std::string_view what) {
  return Status(Code::kIo,
                fmt::format("{} of the bundle {} cannot be kept in the cache directory {}; HSTUJIT_LOG=cache "
                            "says why",
                            what, quote(bundle.path()), quote(directory)));
}

}  // namespace

Result<ExportedBundle> export_bundle(const CacheLayers& layers, const std::string& op) {
  ExportedBundle exported;
  std::map<std::string, std::string> files;
  for (const CacheLayerPtr& layer : layers) {
    for (const StoredArtifact& stored : layer->artifacts()) {
      const ArtifactKey& key = stored.metadata.key;
      const ArtifactFiles names(kNoRoot, key.arch, stored.digest);
      if (files.contains(names.metadata.native()) || (!op.empty() && op_of(key) != op)) continue;
      Result<LoadedArtifact> loaded = layer->find_artifact(key.arch, stored.digest);
      if (!loaded.ok()) continue;  // as a look-up would pass over it; verify names it
      files.emplace(names.metadata.native(), format_metadata(loaded->metadata));
      files.emplace(names.cubin.native(), std::move(loaded->cubin));
      ++exported.kernels;
    }
    for (const StoredRecord& stored : layer->records()) {
      if (!op.empty() && stored.record.key.op != op) continue;
      HSTUJIT_ASSIGN_OR_RETURN(std::string text, format_record(stored.record));
      const std::string name = record_file(kNoRoot, stored.digest).native();
      if (files.emplace(name, std::move(text)).second) ++exported.records;
    }
  }
  HSTUJIT_ASSIGN_OR_RETURN(exported.packed, pack_bundle(files));
  return exported;
}

Result<ImportReport> import_bundle(const BundleLayer& bundle, ArtifactStore& store, TuningDatabase& database) {
  HSTUJIT_RETURN_IF_ERROR(bundle.health());
  for (const VerifiedFile& file : bundle.verify()) {
    if (!file.problem.empty())
      return Status(Code::kIo, fmt::format("{}: {}; nothing is imported", quote(file.path), file.problem));
  }
  if (store.layers().empty() || !store.layers().front()->writable()) {
    return Status(
        Code::kInvalidArgument,
        "there is no cache directory to import into: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset");
  }
  const CacheLayer& user = *store.layers().front();
  ImportReport report;
  for (const StoredArtifact& stored : bundle.artifacts()) {
    const ArtifactMetadata& metadata = stored.metadata;
    ++report.kernels;
    if (user.find_artifact(metadata.key.arch, stored.digest).ok()) continue;
    const Result<LoadedArtifact> loaded = bundle.find_artifact(metadata.key.arch, stored.digest);
    if (!loaded.ok() || !store.put(metadata.key, loaded->cubin, metadata.info))
      return not_kept(bundle, user.path(), fmt::format("the kernel {}", stored.digest));
    ++report.new_kernels;
  }
  for (const StoredRecord& stored : bundle.records()) {
    ++report.records;
    const Result<TuningRecord> before = user.find_record(stored.digest);
    if (before.ok() && *before == stored.record) continue;
    // What was found here counts as the newer finding, its winner among them.
    TuningRecord joined = stored.record;
    if (before.ok()) {
      HSTUJIT_ASSIGN_OR_RETURN(joined, merge_records(stored.record, *before));
    }
    HSTUJIT_ASSIGN_OR_RETURN([[maybe_unused]] const TuningRecord merged, database.add(joined));
    const Result<TuningRecord> after = user.find_record(stored.digest);
    if (!after.ok()) return not_kept(bundle, user.path(), fmt::format("the tuning record {}", stored.digest));
    if (!before.ok()) {
      ++report.new_records;
    } else if (*before != *after) {
      ++report.changed_records;
    }
  }
  return report;
}

}  // namespace hstujit
