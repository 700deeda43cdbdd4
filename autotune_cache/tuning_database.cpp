#include "autotune_cache/tuning_database.h"

#include <algorithm>
#include <utility>

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// How often a writer looks whether another one has replaced what it wrote. Each time it has merged more of the others'.
constexpr int kAttempts = 64;

bool is_any(const TuningRecord&) { return true; }

// True when merging `part` into `whole` would change nothing that was measured.
bool contains(const TuningRecord& whole, const TuningRecord& part) {
  const auto has_timed = [&](const TimedCandidate& candidate) {
    return whole.valid_timing(candidate.config, candidate.source_digest, candidate.workload) != nullptr;
  };
  const auto has_rejected = [&](const UntimedCandidate& candidate) {
    return std::any_of(whole.rejected.begin(), whole.rejected.end(), [&](const UntimedCandidate& other) {
      return other.reason == candidate.reason && other.source_digest == candidate.source_digest &&
             same_config(other.config, candidate.config);
    });
  };
  return std::all_of(part.timed.begin(), part.timed.end(), has_timed) &&
         std::all_of(part.rejected.begin(), part.rejected.end(), has_rejected);
}

}  // namespace

TuningDatabase::TuningDatabase(CacheLayers layers, Log log)
    : layers_(std::move(layers)), user_(writable_tree(layers_)), log_(std::move(log)) {}

TuningDatabase::TuningDatabase(const CacheDirectories& directories, const Log& log)
    : TuningDatabase(open_layers(directories, log), log) {}

void TuningDatabase::warn_once(const std::string& path, std::string_view event, std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(path).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"path", path}, {"reason", reason}});
}

std::optional<TuningRecord> TuningDatabase::find_in(const CacheLayer& layer, const std::string& digest) {
  Result<TuningRecord> record = layer.find_record(digest);
  if (record.ok()) return std::move(record).value();
  if (record.status().code() != Code::kNotFound) {
    warn_once(record_file(layer.path(), digest).native(), "bad_record", record.status().message());
  }
  return std::nullopt;
}

std::optional<TuningRecord> TuningDatabase::find(const TuningKey& key) { return find(key, is_any); }

std::optional<TuningRecord> TuningDatabase::find(const TuningKey& key,
                                                 const std::function<bool(const TuningRecord&)>& usable) {
  std::optional<Found> found = look_up(key, usable, true);
  if (!found) return std::nullopt;
  if (found->layer->remote()) {
    // What the directory has of this key is no use to the caller: the remote's winner becomes the key's.
    if (Result<TuningRecord> kept = merge_and_store(found->record); kept.ok()) return std::move(kept).value();
  }
  return std::move(found->record);
}

std::optional<TuningDatabase::Found> TuningDatabase::look_up(const TuningKey& key,
                                                             const std::function<bool(const TuningRecord&)>& usable,
                                                             bool ask_remote) {
  const std::string digest = tuning_digest(key);
  for (const CacheLayerPtr& layer : layers_) {
    if (layer->remote() && !ask_remote) continue;
    std::optional<TuningRecord> record = find_in(*layer, digest);
    if (!record || !usable(*record)) continue;
    log_.event(LogCategory::kTune, "record_hit", {{"digest", digest}, {"directory", layer->path()}});
    return Found{std::move(*record), layer.get()};
  }
  log_.event(LogCategory::kTune, "record_miss", {{"digest", digest}, {"op", key.op}, {"bucket", key.bucket}});
  return std::nullopt;
}

Result<std::optional<TuningRecord>> TuningDatabase::store(const Folder& folder, const std::string& digest,
                                                          const std::string& text) {
  const std::string name = record_file(kNoRoot, digest).filename();
  folder.remove_folder(name);  // nobody's, with the name of a record
  HSTUJIT_ASSIGN_OR_RETURN(const std::optional<std::string> displaced, folder.exchange(name, text, kMostRecordBytes));
  Result<TuningRecord> record = parse_record(displaced.value_or(""), digest);
  return record.ok() ? std::optional(std::move(record).value()) : std::nullopt;
}

Result<TuningRecord> TuningDatabase::add(const TuningRecord& record) {
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, merge_and_store(record));
  for (const CacheLayerPtr& layer : layers_) layer->offer(merged);
  return merged;
}

Result<TuningRecord> TuningDatabase::merge_and_store(const TuningRecord& record) {
  const std::string digest = tuning_digest(record.key);
  TuningRecord empty;
  empty.key = record.key;
  // Once by itself, so that a caller's own mistake is told apart from trouble with files.
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, merge_records(empty, record));
  HSTUJIT_ASSIGN_OR_RETURN([[maybe_unused]] const std::string checked, format_record(merged));

  TuningRecord displaced_before = empty;  // by this call: older than what is stored, and than `record`
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (const std::optional<Found> stored = look_up(record.key, is_any, false)) {
      HSTUJIT_ASSIGN_OR_RETURN(const TuningRecord known, merge_records(displaced_before, stored->record));
      HSTUJIT_ASSIGN_OR_RETURN(merged, merge_records(known, record));
      if (attempt > 0 && contains(stored->record, merged)) return stored->record;
    }
    if (user_ == nullptr) return merged;
    HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_record(merged));
    const auto folder = user_->make(record_file(kNoRoot, digest).parent_path());
    if (!folder.ok()) return merged;  // which is logged
    const Result<std::optional<TuningRecord>> displaced = store(*folder, digest, text);
    if (!displaced.ok()) {
      warn_once("write " + user_->root(), "directory_not_writable", displaced.status().message());
      return merged;
    }
    // Written since it was looked for: what it has is in no file now.
    if (*displaced && !contains(merged, **displaced)) {
      HSTUJIT_ASSIGN_OR_RETURN(displaced_before, merge_records(displaced_before, **displaced));
    }
  }
  return merged;
}

std::vector<StoredRecord> TuningDatabase::list() const { return gather(layers_, &CacheLayer::records); }

}  // namespace hstujit
