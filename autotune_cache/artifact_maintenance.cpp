// Looking through whole layers: list, verify, prune.
#include <algorithm>
#include <chrono>
#include <map>

#include "autotune_cache/artifact_files.h"
#include "autotune_cache/artifact_state.h"
#include "autotune_cache/artifact_store.h"
#include "compiler/support/files.h"

namespace hstujit {

namespace fs = std::filesystem;

// An entry as prune sees it.
struct ArtifactStore::Candidate {
  ArtifactFiles files;
  std::string digest;
  uint64_t bytes = 0;
  int64_t last_used = 0;
  bool complete = false;
};

std::vector<StoredArtifact> ArtifactStore::list() const { return gather(layers_, &CacheLayer::artifacts); }

std::vector<VerifiedFile> ArtifactStore::verify() const { return gather(layers_, &CacheLayer::verify); }

PruneReport ArtifactStore::prune(const PruneRequest& request) {
  PruneReport report;
  const std::string& root = directories_.user;
  if (root.empty()) return report;
  report.leftovers = sweep_leftovers(root);

  std::map<std::pair<std::string, std::string>, Candidate> found;
  for_each_artifact_file(root, [&](const std::string& arch, const fs::path& path) {
    auto digest = digest_of_file(path, ".cubin");
    if (!digest) digest = digest_of_file(path, ".json");
    if (!digest) digest = digest_of_note(path).first;
    const auto times = digest ? file_times(path) : std::nullopt;
    if (!times) return;
    const ArtifactFiles files(root, arch, *digest);
    if (path.parent_path() != files.cubin.parent_path()) return;
    Candidate& entry = found.try_emplace({arch, *digest}, Candidate{files, *digest}).first->second;
    entry.bytes += times->bytes;
    entry.last_used = std::max(entry.last_used, times->nanoseconds);
    entry.complete = entry.complete || path == files.metadata;
  });

  const int64_t abandoned_before =
      std::chrono::nanoseconds((std::chrono::system_clock::now() - kLeftoverAge).time_since_epoch()).count();
  std::vector<Candidate> entries;
  for (auto& [name, entry] : found) {
    // A writer or a pruner died on the way.
    if (!entry.complete && entry.last_used < abandoned_before && remove_artifact(entry.files).ok()) {
      ++report.leftovers;
    } else {
      report.kept_bytes += entry.bytes;
      entries.push_back(std::move(entry));
    }
  }
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
    bool unwanted = request.max_bytes && report.kept_bytes > *request.max_bytes;
    if (!unwanted && !request.nvrtc.empty()) {
      const auto text = read_regular_file(entry.files.metadata);
      const auto metadata = text.ok() ? parse_metadata(*text, entry.digest) : Result<ArtifactMetadata>(text.status());
      unwanted = metadata.ok() && metadata->info.nvrtc == request.nvrtc;
    }
    if (!unwanted) continue;
    if (const Status status = remove_artifact(entry.files); !status.ok()) {
      warn_once("remove " + root, "not_removed", root, status.message());
      ++report.not_removed;
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
