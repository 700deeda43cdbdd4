// Looking through whole directories of cubins: list, verify, prune.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <tuple>

#include "autotune_cache/artifact_files.h"
#include "autotune_cache/artifact_state.h"
#include "autotune_cache/artifact_store.h"
#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

struct FileTimes {
  uint64_t bytes = 0;
  int64_t nanoseconds = 0;  // of the last write, since 1970
};

std::optional<FileTimes> file_times(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileTimes{static_cast<uint64_t>(info.st_size),
                   static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// Calls visit(arch, path) for each file in the folders of cubins.
template <typename Visitor>
void for_each_artifact_file(const std::string& root, Visitor&& visit) {
  std::error_code error;
  fs::directory_iterator folder(version_folder(root), error);
  while (!error && folder != fs::directory_iterator()) {
    const std::string arch = folder->path().filename().native();
    if (is_arch_name(arch)) for_each_file(folder->path(), [&](const fs::path& path) { visit(arch, path); });
    folder.increment(error);
  }
}

// The digest and the extension of a note; no digest for any other name.
std::pair<std::optional<std::string>, std::string_view> digest_of_note(const fs::path& path) {
  for (const std::string_view extension : kNoteExtensions) {
    if (auto digest = digest_of_file(path, extension)) return {std::move(digest), extension};
  }
  return {};
}

std::string problem_of(const std::string& root, const std::string& arch, const fs::path& path) {
  if (is_abandoned_temporary(path)) return "left behind by an interrupted write; prune removes it after an hour";
  if (const auto digest = digest_of_file(path, ".cubin")) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.cubin != path) return "it lies in the wrong folder";
    std::error_code error;
    if (!fs::exists(files.metadata, error)) return "it has no metadata; prune removes it after an hour";
    return {};
  }
  if (const auto digest = digest_of_file(path, ".json")) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.metadata != path) return "it lies in the wrong folder";
    const auto loaded = load_artifact(files, *digest);
    return loaded.ok() ? std::string() : loaded.status().message();
  }
  if (const auto [digest, extension] = digest_of_note(path); digest) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.note(extension) != path) return "it lies in the wrong folder";
    std::error_code error;
    if (!fs::exists(files.metadata, error)) return "it has no entry; prune removes it after an hour";
    return {};
  }
  return "it is not a file of the cache";
}

}  // namespace

// An entry as prune sees it.
struct ArtifactStore::Candidate {
  ArtifactFiles files;
  std::string digest;
  uint64_t bytes = 0;
  int64_t last_used = 0;
  bool complete = false;
};

std::vector<StoredArtifact> ArtifactStore::list() const {
  std::vector<StoredArtifact> all;
  for (const std::string& root : directories_.in_order()) {
    const size_t first = all.size();
    for_each_artifact_file(root, [&](const std::string& arch, const fs::path& path) {
      const auto digest = digest_of_file(path, ".json");
      if (!digest) return;
      const auto text = read_file(path);
      if (!text.ok()) return;
      auto metadata = parse_metadata(*text, *digest);
      const auto times = file_times(path);
      if (!metadata.ok() || metadata->key.arch != arch || !times) return;
      const auto cubin = file_times(ArtifactFiles(root, arch, *digest).cubin);
      all.push_back({std::move(metadata).value(), *digest, root, times->bytes + (cubin ? cubin->bytes : 0),
                     times->nanoseconds / 1'000'000'000});
    });
    std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
              [](const StoredArtifact& a, const StoredArtifact& b) {
                return std::tie(a.metadata.key.arch, a.digest) < std::tie(b.metadata.key.arch, b.digest);
              });
  }
  return all;
}

std::vector<VerifiedFile> ArtifactStore::verify() const {
  std::vector<VerifiedFile> report;
  for (const std::string& root : directories_.in_order()) {
    const size_t first = report.size();
    for_each_artifact_file(root, [&](const std::string& arch, const fs::path& path) {
      std::string problem = problem_of(root, arch, path);
      // A good entry is one line, its metadata's; its other files have one only when something is wrong with them.
      if (problem.empty() && !digest_of_file(path, ".json")) return;
      report.push_back({path.native(), std::move(problem)});
    });
    std::sort(report.begin() + static_cast<std::ptrdiff_t>(first), report.end(),
              [](const VerifiedFile& a, const VerifiedFile& b) { return a.path < b.path; });
  }
  return report;
}

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
    if (!entry.complete && entry.last_used < abandoned_before) {
      remove_artifact(entry.files);  // a writer or a pruner died on the way
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
      const auto text = read_file(entry.files.metadata);
      const auto metadata = text.ok() ? parse_metadata(*text, entry.digest) : Result<ArtifactMetadata>(text.status());
      unwanted = metadata.ok() && metadata->info.nvrtc == request.nvrtc;
    }
    if (!unwanted) continue;
    remove_artifact(entry.files);
    ++report.removed;
    report.removed_bytes += entry.bytes;
    --report.kept;
    report.kept_bytes -= entry.bytes;
  }
  log_.event(LogCategory::kCache, "pruned",
             {{"removed", report.removed}, {"kept", report.kept}, {"kept_bytes", report.kept_bytes}});
  return report;
}

}  // namespace hstujit
