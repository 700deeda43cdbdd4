#include "autotune_cache/directory_layer.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <tuple>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbandoned = "left behind by an interrupted write; prune removes it after an hour";
constexpr const char* kMisplaced = "it lies in the wrong folder";
constexpr const char* kForeign = "it is not a file of the cache";

// What is wrong with a file in the folders of cubins.
std::string problem_of_artifact(const std::string& root, const std::string& arch, const fs::path& path) {
  if (is_abandoned_temporary(path)) return kAbandoned;
  if (const auto digest = digest_of_file(path, ".cubin")) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.cubin != path) return kMisplaced;
    std::error_code error;
    if (!fs::exists(files.metadata, error)) return "it has no metadata; prune removes it after an hour";
    return {};
  }
  if (const auto digest = digest_of_file(path, ".json")) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.metadata != path) return kMisplaced;
    const auto loaded = load_artifact(files, *digest);
    return loaded.ok() ? std::string() : loaded.status().message();
  }
  if (const auto [digest, extension] = digest_of_note(path); digest) {
    const ArtifactFiles files(root, arch, *digest);
    if (files.note(extension) != path) return kMisplaced;
    std::error_code error;
    if (!fs::exists(files.metadata, error)) return "it has no entry; prune removes it after an hour";
    return {};
  }
  return kForeign;
}

// What is wrong with a file in the folders of tuning records.
std::string problem_of_record(const std::string& root, const fs::path& path) {
  if (is_abandoned_temporary(path)) return kAbandoned;
  const auto digest = digest_of_file(path, ".json");
  if (!digest) return kForeign;
  if (record_file(root, *digest) != path) return kMisplaced;
  const auto text = read_regular_file(path);
  return text.ok() ? parse_record(*text, *digest).status().message() : text.status().message();
}

}  // namespace

Result<LoadedArtifact> DirectoryLayer::find_artifact(std::string_view arch, std::string_view digest) const {
  return load_artifact(ArtifactFiles(path(), arch, digest), digest);
}

Result<TuningRecord> DirectoryLayer::find_record(std::string_view digest) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_regular_file(record_file(path(), digest)));
  return parse_record(text, digest);
}

std::vector<StoredArtifact> DirectoryLayer::artifacts() const {
  std::vector<StoredArtifact> all;
  for_each_artifact_file(path(), [&](const std::string& arch, const fs::path& file) {
    const auto digest = digest_of_file(file, ".json");
    if (!digest) return;
    const auto text = read_regular_file(file);
    if (!text.ok()) return;
    auto metadata = parse_metadata(*text, *digest);
    const auto times = file_times(file);
    if (!metadata.ok() || metadata->key.arch != arch || !times) return;
    const auto cubin = file_times(ArtifactFiles(path(), arch, *digest).cubin);
    all.push_back({std::move(metadata).value(), *digest, path(), times->bytes + (cubin ? cubin->bytes : 0),
                   times->nanoseconds / 1'000'000'000});
  });
  std::sort(all.begin(), all.end(), [](const StoredArtifact& a, const StoredArtifact& b) {
    return std::tie(a.metadata.key.arch, a.digest) < std::tie(b.metadata.key.arch, b.digest);
  });
  return all;
}

std::vector<StoredRecord> DirectoryLayer::records() const {
  std::vector<StoredRecord> all;
  for_each_file(tuning_root(path()), [&](const fs::path& file) {
    const auto digest = digest_of_file(file, ".json");
    if (!digest) return;
    const auto text = read_regular_file(file);
    if (!text.ok()) return;
    auto record = parse_record(*text, *digest);
    if (record.ok()) all.push_back({std::move(record).value(), *digest, path()});
  });
  std::sort(all.begin(), all.end(), [](const StoredRecord& a, const StoredRecord& b) { return a.digest < b.digest; });
  return all;
}

std::vector<VerifiedFile> DirectoryLayer::verify() const {
  std::vector<VerifiedFile> report;
  for_each_artifact_file(path(), [&](const std::string& arch, const fs::path& file) {
    std::string problem = problem_of_artifact(path(), arch, file);
    // A good entry is one line, its metadata's; its other files have one only when something is wrong with them.
    if (problem.empty() && !digest_of_file(file, ".json")) return;
    report.push_back({file.native(), std::move(problem)});
  });
  for_each_file(tuning_root(path()),
                [&](const fs::path& file) { report.push_back({file.native(), problem_of_record(path(), file)}); });
  std::sort(report.begin(), report.end(), [](const VerifiedFile& a, const VerifiedFile& b) { return a.path < b.path; });
  return report;
}

}  // namespace hstujit
