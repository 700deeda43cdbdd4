#include "autotune_cache/store/tuning_database.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/support/files.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// How often a writer looks whether another one has replaced what it wrote. Each time it has merged more of the others'.
constexpr int kAttempts = 64;
// The same of a record that is full: two that have more than fits would take turns.
constexpr int kAttemptsOfAFullRecord = 3;
// How often a record that the system fails to read is looked at: on a network file system the next look may find it.
constexpr int kLooks = 4;

bool is_any(const TuningRecord&) { return true; }

}  // namespace

TuningDatabase::TuningDatabase(CacheLayers layers, Log log)
    : layers_(std::move(layers)), user_(writable_tree(layers_)), log_(std::move(log)) {}

TuningDatabase::TuningDatabase(const CacheDirectories& directories, const Log& log)
    : TuningDatabase(open_layers(directories, log), log) {}

void TuningDatabase::warn_once(const std::string& path, std::string_view event, std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(fmt::format("{} {}", event, path)).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"path", path}, {"reason", reason}});
}

std::optional<TuningRecord> TuningDatabase::find_in(const CacheLayer& layer, const std::string& digest,
                                                    Status* failure) {
  Result<TuningRecord> record = within_memory("the record", [&] { return layer.find_record(digest); });
  if (record.ok()) return std::move(record).value();
  keep_failure(record.status(), failure);
  if (record.status().code() != Code::kNotFound) {
    warn_once(record_file(layer.path(), digest).native(), "bad_record", record.status().message());
  }
  return std::nullopt;
}

std::optional<TuningRecord> TuningDatabase::find(const TuningKey& key) { return find(key, is_any); }

std::optional<TuningRecord> TuningDatabase::find(const TuningKey& key, const UsableRecord& usable, Keep keep) {
  std::optional<Found> found = look_up(key, usable, true);
  if (!found) return std::nullopt;
  return kept(std::move(*found), keep);
}

TuningRecord TuningDatabase::kept(Found found, Keep keep) {
  if (found.layer->remote() && keep == Keep::kFound) {
    // The directory's record of this key is of no use to the caller: the remote's winner becomes the key's.
    if (Result<TuningRecord> stored = merge_and_store(found.record); stored.ok()) return std::move(stored).value();
  }
  return std::move(found.record);
}

std::optional<TuningDatabase::Decision> TuningDatabase::decide(const TuningKey& key, std::string_view generator,
                                                               const UsableRecord& usable_record,
                                                               const UsableChoice& usable_choice, Keep keep) {
  const std::string record_digest = tuning_digest(key);
  const std::string digest = choice_digest(key, generator);
  for (const CacheLayerPtr& layer : layers_) {
    std::optional<ChoiceRecord> choice = find_choice_in(*layer, digest);
    if (choice && (!choice->exported || !usable_choice(*choice))) choice.reset();
    if (!choice || is_guess(choice->source)) {
      std::optional<TuningRecord> record = find_in(*layer, record_digest);
      if (record && usable_record(*record)) {
        log_.event(LogCategory::kTune, "record_hit", {{"digest", record_digest}, {"directory", layer->path()}});
        return Decision{kept({std::move(*record), layer.get()}, keep), std::nullopt};
      }
    }
    if (!choice) continue;
    log_.event(LogCategory::kTune, "choice_hit", {{"digest", digest}, {"directory", layer->path()}});
    return Decision{std::nullopt, std::move(choice)};
  }
  log_.event(LogCategory::kTune, "record_miss", {{"digest", record_digest}, {"op", key.op}, {"bucket", key.bucket}});
  return std::nullopt;
}

std::optional<ChoiceRecord> TuningDatabase::find_choice_in(const CacheLayer& layer, const std::string& digest,
                                                           Status* failure) {
  Result<ChoiceRecord> choice = within_memory("the choice", [&] { return layer.find_choice(digest); });
  if (choice.ok()) return std::move(choice).value();
  keep_failure(choice.status(), failure);
  if (choice.status().code() != Code::kNotFound) {
    warn_once(choice_file(layer.path(), digest).native(), "bad_choice", choice.status().message());
  }
  return std::nullopt;
}

std::optional<ChoiceRecord> TuningDatabase::noted_choice(const TuningKey& key, std::string_view generator) {
  const std::string digest = choice_digest(key, generator);
  {
    const std::lock_guard lock(mutex_);
    if (const ChoiceRecord* const noted = noted_.find(digest)) return *noted;
  }
  for (const CacheLayerPtr& layer : layers_) {
    if (std::optional<ChoiceRecord> choice = find_choice_in(*layer, digest)) return choice;
  }
  return std::nullopt;
}

void TuningDatabase::note_choice(const ChoiceRecord& choice) {
  const std::string digest = choice_digest(choice.key, choice.generator);
  {
    const std::lock_guard lock(mutex_);
    if (const ChoiceRecord* const noted = noted_.find(digest); noted != nullptr && *noted == choice) return;
    noted_.put(digest, choice);
  }
  for (const CacheLayerPtr& layer : layers_) {
    Status failure;
    const std::optional<ChoiceRecord> found = find_choice_in(*layer, digest, &failure);
    if (!failure.ok() && layer->writable()) return;  // an exported one may be there
    if (found && (*found == choice || (found->exported && layer->writable()))) return;
    if (found) break;
  }
  keep_choice(choice);
}

void TuningDatabase::keep_choice(const ChoiceRecord& choice) {
  if (user_ == nullptr) return;
  const Result<std::string> text = format_choice(choice);
  if (!text.ok()) return;
  const std::string digest = choice_digest(choice.key, choice.generator);
  const fs::path name = choice_file(kNoRoot, digest);
  const Status status = user_->change(name.parent_path(), [&](const Folder& folder) {
    folder.remove_folder(name.filename());  // nobody's, with the name of a choice
    return folder.write(name.filename(), *text);
  });
  if (!status.ok()) return not_kept_.add(digest, status.message());
  not_kept_.remove(digest);
}

void TuningDatabase::drop_choice(const TuningKey& key, std::string_view generator, bool noted_only) {
  const std::string digest = choice_digest(key, generator);
  {
    const std::lock_guard lock(mutex_);
    noted_.erase(digest);
  }
  if (user_ == nullptr) return;
  const fs::path name = choice_file(kNoRoot, digest);
  const auto folder = user_->open(name.parent_path());
  if (!folder.ok()) return;
  if (noted_only) {
    const auto text = folder->read(name.filename(), kMaxChoiceBytes);
    if (!text.ok()) return;
    const Result<ChoiceRecord> choice = parse_choice(*text, digest);
    if (choice.ok() ? choice->exported : is_system_failure(choice.status())) return;
  }
  if (const Status status = folder->remove(name.filename()); !status.ok()) {
    warn_once("remove " + name.native(), "not_removed", status.message());
  }
}

std::optional<TuningDatabase::Found> TuningDatabase::look_up(const TuningKey& key, const UsableRecord& usable,
                                                             bool ask_remote, Status* failure) {
  const std::string digest = tuning_digest(key);
  for (const CacheLayerPtr& layer : layers_) {
    if (layer->remote() && !ask_remote) continue;
    std::optional<TuningRecord> record = find_in(*layer, digest, layer->writable() ? failure : nullptr);
    if (!record || !usable(*record)) continue;
    log_.event(LogCategory::kTune, "record_hit", {{"digest", digest}, {"directory", layer->path()}});
    return Found{std::move(*record), layer.get()};
  }
  log_.event(LogCategory::kTune, "record_miss", {{"digest", digest}, {"op", key.op}, {"bucket", key.bucket}});
  return std::nullopt;
}

Result<std::optional<TuningRecord>> TuningDatabase::store(const std::string& digest, const std::string& text) {
  const fs::path name = record_file(kNoRoot, digest);
  std::optional<TuningRecord> record;
  const auto take = [&](const std::string& displaced) -> Status {
    Result<TuningRecord> parsed = parse_record(displaced, digest);
    if (parsed.ok()) record = std::move(parsed).value();
    return is_system_failure(parsed.status()) ? parsed.status() : Status();  // a damaged one is lost anyway
  };
  HSTUJIT_RETURN_IF_ERROR(user_->change(name.parent_path(), [&](const Folder& folder) {
    folder.remove_folder(name.filename());  // nobody's, with the name of a record
    return folder.exchange(name.filename(), text, kMaxRecordBytes, take).status();
  }));
  return record;
}

Result<TuningRecord> TuningDatabase::add(const TuningRecord& record) {
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, merge_and_store(record));
  for (const CacheLayerPtr& layer : layers_) layer->offer(merged);
  return merged;
}

std::optional<TuningDatabase::Found> TuningDatabase::look_up_here(const TuningKey& key, Status* failure) {
  for (int look = 1;; ++look) {
    Status unread;
    std::optional<Found> found = look_up(key, is_any, false, &unread);
    if (unread.ok()) return found;
    if (look < kLooks) continue;
    *failure = unread;
    return std::nullopt;
  }
}

Result<TuningRecord> TuningDatabase::merge_and_store(const TuningRecord& record) {
  const std::string digest = tuning_digest(record.key);
  TuningRecord empty;
  empty.key = record.key;
  // Once by itself, so that a caller's own mistake is told apart from trouble with files.
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, merge_records(empty, record));
  HSTUJIT_ASSIGN_OR_RETURN([[maybe_unused]] const std::string checked, format_record(merged));

  std::optional<TuningRecord> displaced_before;  // by this call: older than what is stored, and than `record`
  int attempts = kAttempts;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const auto not_kept = [&](const std::string& reason) {
      not_kept_.add(digest, reason);
      return merged;
    };
    Status unread;
    const std::optional<Found> stored = look_up_here(record.key, &unread);
    // It may say more than what would replace it. What this call has written before is kept.
    if (!unread.ok() && attempt > 0 && !displaced_before) return merged;
    if (!unread.ok()) return not_kept(unread.message());
    // This call has written the record, which lacks nothing of those that it has displaced.
    if (attempt > 0 && stored && !displaced_before && stored->record == merged) return merged;
    if (stored) {
      size_t displaced_out = 0, stored_out = 0;
      TuningRecord known = stored->record;
      if (displaced_before) {
        HSTUJIT_ASSIGN_OR_RETURN(known, merge_records(*displaced_before, stored->record, &displaced_out));
      }
      HSTUJIT_ASSIGN_OR_RETURN(merged, merge_records(known, record, &stored_out));
      if (attempt > 0 && contains(stored->record, merged)) return stored->record;
      if (const size_t left_out = displaced_out + stored_out; left_out > 0) {
        attempts = kAttemptsOfAFullRecord;
        warn_once(record_file(stored->layer->path(), digest).native(), "record_full",
                  fmt::format("{} older findings are left out: with them no reader would take it", left_out));
      }
    }
    if (user_ == nullptr) return not_kept(kNoUserDirectory);
    HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_record(merged));
    const Result<std::optional<TuningRecord>> displaced = store(digest, text);
    if (!displaced.ok()) return not_kept(displaced.status().message());
    not_kept_.remove(digest);
    // Written since it was looked for: what it has is in no file now.
    const bool is_known = !*displaced || (stored && **displaced == stored->record);
    if (!is_known && !contains(merged, **displaced)) {
      HSTUJIT_ASSIGN_OR_RETURN(displaced_before, merge_records(displaced_before.value_or(empty), **displaced));
    }
  }
  return merged;
}

std::vector<StoredRecord> TuningDatabase::list() const { return gather(layers_, &records_of); }

}  // namespace hstujit
