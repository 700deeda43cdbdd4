#include "autotune_cache/tuning_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "autotune_cache/artifact_files.h"
#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// How often a writer looks whether another one has replaced what it wrote. Each time it has merged more of the others'.
constexpr int kAttempts = 64;

fs::path record_path(const std::string& root, std::string_view digest) {
  return tuning_folder(root, digest) / fmt::format("{}.json", digest);
}

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

TuningDatabase::TuningDatabase(CacheDirectories directories, Log log)
    : directories_(std::move(directories)), log_(std::move(log)) {}

void TuningDatabase::warn_once(const std::string& path, std::string_view event, std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(path).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"path", path}, {"reason", reason}});
}

std::optional<TuningRecord> TuningDatabase::find_in(const std::string& root, const std::string& digest) {
  const fs::path path = record_path(root, digest);
  const Result<std::string> text = read_file(path);
  if (!text.ok()) {
    if (text.status().code() != Code::kNotFound) warn_once(path.native(), "bad_record", text.status().message());
    return std::nullopt;
  }
  Result<TuningRecord> record = parse_record(*text, digest);
  if (!record.ok()) {
    warn_once(path.native(), "bad_record", record.status().message());
    return std::nullopt;
  }
  return std::move(record).value();
}

std::optional<TuningRecord> TuningDatabase::find(const TuningKey& key) {
  const std::string digest = tuning_digest(key);
  for (const std::string& root : directories_.in_order()) {
    if (std::optional<TuningRecord> record = find_in(root, digest)) {
      log_.event(LogCategory::kTune, "record_hit", {{"digest", digest}, {"directory", root}});
      return record;
    }
  }
  log_.event(LogCategory::kTune, "record_miss", {{"digest", digest}, {"op", key.op}, {"bucket", key.bucket}});
  return std::nullopt;
}

Result<std::optional<TuningRecord>> TuningDatabase::store(const std::string& digest, const std::string& text) const {
  const fs::path path = record_path(directories_.user, digest);
  HSTUJIT_RETURN_IF_ERROR(make_directories(path.parent_path()));
  // A rename cannot replace a folder. One with the name of a record is nobody's: it goes.
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) fs::remove_all(path, error);
  HSTUJIT_ASSIGN_OR_RETURN(const std::optional<std::string> displaced, exchange_file(path, text));
  Result<TuningRecord> record = parse_record(displaced.value_or(""), digest);
  return record.ok() ? std::optional(std::move(record).value()) : std::nullopt;
}

Result<TuningRecord> TuningDatabase::add(const TuningRecord& record) {
  const std::string digest = tuning_digest(record.key);
  TuningRecord empty;
  empty.key = record.key;
  // Once by itself, so that a caller's own mistake is told apart from trouble with files.
  HSTUJIT_ASSIGN_OR_RETURN(TuningRecord merged, merge_records(empty, record));
  HSTUJIT_ASSIGN_OR_RETURN([[maybe_unused]] const std::string checked, format_record(merged));

  TuningRecord displaced_before = empty;  // by this call: older than what is stored, and than `record`
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (const std::optional<TuningRecord> stored = find(record.key)) {
      HSTUJIT_ASSIGN_OR_RETURN(const TuningRecord known, merge_records(displaced_before, *stored));
      HSTUJIT_ASSIGN_OR_RETURN(merged, merge_records(known, record));
      if (attempt > 0 && contains(*stored, merged)) return *stored;
    }
    if (directories_.user.empty()) return merged;
    HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_record(merged));
    const Result<std::optional<TuningRecord>> displaced = store(digest, text);
    if (!displaced.ok()) {
      warn_once("write " + directories_.user, "directory_not_writable", displaced.status().message());
      return merged;
    }
    // Written since it was looked for: what it has is in no file now.
    if (*displaced && !contains(merged, **displaced)) {
      HSTUJIT_ASSIGN_OR_RETURN(displaced_before, merge_records(displaced_before, **displaced));
    }
  }
  return merged;
}

std::vector<StoredRecord> TuningDatabase::list() const {
  std::vector<StoredRecord> all;
  for (const std::string& root : directories_.in_order()) {
    const size_t first = all.size();
    for_each_file(version_folder(root) / "tuning", [&](const fs::path& path) {
      const auto digest = digest_of_file(path, ".json");
      if (!digest) return;
      const auto text = read_file(path);
      if (!text.ok()) return;
      auto record = parse_record(*text, *digest);
      if (record.ok()) all.push_back({std::move(record).value(), *digest, root});
    });
    std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
              [](const StoredRecord& a, const StoredRecord& b) { return a.digest < b.digest; });
  }
  return all;
}

}  // namespace hstujit
