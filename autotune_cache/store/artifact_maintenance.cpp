// Looking through whole layers: list, verify, prune.
#include <algorithm>
#include <chrono>
#include <map>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/store/artifact_state.h"
#include "autotune_cache/store/artifact_store.h"
#include "compiler/support/files.h"
#include "compiler/support/folder.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

// Removes what interrupted writers left, when old enough; returns how many files.
int64_t sweep_leftovers(const CacheTree& tree) {
  int64_t removed = 0;
  const auto sweep = [&](const CacheItem& item) {
    if (!item.problem.ok() || !is_abandoned_temporary(item.name) || !is_older_than(item.info.written, kLeftoverAge))
      return;
    const auto folder = tree.open(item.name.parent_path());
    if (folder.ok() && folder->remove(item.name.filename()).ok()) ++removed;
  };
  for_each_artifact_file(tree, [&](const std::string&, const CacheItem& item) { sweep(item); });
  tree.walk(tuning_root(kNoRoot), 1, nullptr, sweep);
  tree.walk(choices_root(kNoRoot), 1, nullptr, sweep);
  return removed;
}

// Whether a look-up refuses a file by its size, which prune does not count then: a few bytes on the disk may claim any
// size.
bool is_too_large(const CacheItem& item) {
  return item.info.bytes > (digest_of_file(item.name, ".json") ? kMaxMetadataBytes : kMaxCubinBytes);
}

// An entry as prune sees it.
struct Candidate {
  std::string arch;
  std::string digest;
  uint64_t bytes = 0;
  FileTime last_used = {};
  bool complete = false;
  bool passed_over = false;
};

// By arch and digest. `unread`: why some of the directory could not be looked at.
std::vector<Candidate> find_candidates(const CacheTree& tree, Status& unread) {
  std::map<std::pair<std::string, std::string>, Candidate> found;
  for_each_item(tree, [&](const CacheItem& item) {
    if (const auto path = folder_passed_over(tree, item); path && unread.ok())
      unread = item.problem.with_context(printable(*path));
    const std::string arch = arch_of(item);
    if (arch.empty()) return;
    if (is_system_failure(item.problem)) unread = item.problem;
    auto digest = digest_of_file(item.name, ".cubin");
    if (!digest) digest = digest_of_file(item.name, ".json");
    if (!digest) digest = digest_of_note(item.name).first;
    if (!digest) return;
    const ArtifactFiles files(kNoRoot, arch, *digest);
    if (item.name.parent_path() != files.folder()) return;
    Candidate& entry = found.try_emplace({arch, *digest}, Candidate{arch, *digest}).first->second;
    // A link, somebody else's file or one that is too large: a look-up and ls pass over the whole entry, and so does
    // this.
    entry.passed_over = entry.passed_over || !item.problem.ok() || is_too_large(item);
    entry.bytes += item.info.bytes;
    entry.last_used = std::max(entry.last_used, item.info.written);
    entry.complete = entry.complete || item.name == files.metadata;
  });
  std::vector<Candidate> candidates;
  for (auto& [name, entry] : found) {
    if (!entry.passed_over) candidates.push_back(std::move(entry));
  }
  return candidates;
}

// Removes what a writer or a pruner left when it died on the way; returns how many files.
int64_t remove_abandoned(const CacheTree& tree, std::vector<Candidate>& candidates) {
  return static_cast<int64_t>(std::erase_if(candidates, [&](const Candidate& entry) {
    return !entry.complete && is_older_than(entry.last_used, kLeftoverAge) &&
           remove_artifact(tree, entry.arch, entry.digest).ok();
  }));
}

// Where `kept_bytes` are left of all entries.
bool is_unwanted(const CacheTree& tree, const Candidate& entry, const PruneRequest& request, uint64_t kept_bytes) {
  if (request.max_bytes && kept_bytes > *request.max_bytes) return true;
  if (request.nvrtc.empty()) return false;
  const auto seen = see_artifact(tree, entry.arch, entry.digest);
  return seen.ok() && seen->metadata.info.nvrtc == request.nvrtc;
}

}  // namespace

std::vector<StoredArtifact> ArtifactStore::list() const { return gather(layers_, &artifacts_of); }

std::vector<VerifiedFile> ArtifactStore::verify() const { return gather(layers_, &verify_layer); }

PruneReport ArtifactStore::prune(const PruneRequest& request) {
  PruneReport report;
  if (user_ == nullptr) return report;
  report.unread = user_->health();
  if (!report.unread.ok()) return report;
  report.leftovers = sweep_leftovers(*user_);

  std::vector<Candidate> entries = find_candidates(*user_, report.unread);
  report.leftovers += remove_abandoned(*user_, entries);
  for (const Candidate& entry : entries) report.kept_bytes += entry.bytes;
  report.kept = static_cast<int64_t>(entries.size());
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Candidate& a, const Candidate& b) { return a.last_used < b.last_used; });

  std::set<std::string> in_use;
  {
    const std::lock_guard lock(state_->mutex);
    in_use = state_->in_use;
  }
  for (const Candidate& entry : entries) {
    if (in_use.contains(entry.digest) || !entry.complete) continue;
    if (!is_unwanted(*user_, entry, request, report.kept_bytes)) continue;
    if (const Status status = remove_artifact(*user_, entry.arch, entry.digest); !status.ok()) {
      warn_once("remove " + user_->root(), "not_removed", user_->root(), status.message());
      if (report.not_removed++ == 0) report.not_removed_why = status;
      continue;
    }
    ++report.removed;
    report.removed_bytes += entry.bytes;
    --report.kept;
    report.kept_bytes -= entry.bytes;
  }
  log_.event(LogCategory::kCache, "pruned",
             {{"removed", report.removed},
              {"not_removed", report.not_removed},
              {"kept", report.kept},
              {"kept_bytes", report.kept_bytes}});
  return report;
}

}  // namespace hstujit
