#include "autotune_cache/store/directory_layer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbandoned = "left behind by an interrupted write; prune removes it after an hour";
constexpr const char* kNoMetadata = "it has no metadata; prune removes it after an hour";
constexpr const char* kMisplaced = "it is in the wrong folder";
constexpr const char* kForeign = "it is not a file of the cache";

// A bad file is judged as often, with a pause before each look but the first: others may be between the two files of
// an entry.
constexpr int kJudgements = 3;
constexpr std::chrono::milliseconds kPauseToJudge{50};

Status bad(const char* problem) { return Status(Code::kIo, problem); }

// kOk for a file that lies beside metadata which a look-up reads.
Status expect_metadata(const CacheTree& tree, const fs::path& name) {
  const auto folder = tree.open(name.parent_path());
  Status status = folder.status();
  if (folder.ok()) {
    const auto found = folder->look(name.filename());
    if (found.ok()) return found->is_folder ? bad("its metadata is a folder") : Status();
    status = found.status();
  }
  if (status.code() == Code::kNotFound) return bad(kNoMetadata);
  return status.with_context("its metadata is passed over");
}

// The problem of a file in the folders of cubins.
Status problem_of_artifact(const CacheTree& tree, const std::string& arch, const CacheItem& item) {
  if (!item.problem.ok()) return item.problem;
  if (is_abandoned_temporary(item.name)) return bad(kAbandoned);
  if (const auto digest = digest_of_file(item.name, ".cubin")) {
    const ArtifactFiles files(kNoRoot, arch, *digest);
    if (files.cubin != item.name) return bad(kMisplaced);
    return expect_metadata(tree, files.metadata);
  }
  if (const auto digest = digest_of_file(item.name, ".json")) {
    if (ArtifactFiles(kNoRoot, arch, *digest).metadata != item.name) return bad(kMisplaced);
    return load_artifact(tree, arch, *digest).status();
  }
  if (const auto [digest, extension] = digest_of_note(item.name); digest) {
    const ArtifactFiles files(kNoRoot, arch, *digest);
    if (files.note(extension) != item.name) return bad(kMisplaced);
    return expect_metadata(tree, files.metadata);
  }
  return bad(kForeign);
}

// The problem of a file in the folders of tuning records, or of choices: `place` says where that of a digest lies,
// and `find` reads it.
template <typename Place, typename Find>
Status problem_of_text(const CacheItem& item, const Place& place, const Find& find) {
  if (!item.problem.ok()) return item.problem;
  if (is_abandoned_temporary(item.name)) return bad(kAbandoned);
  const auto digest = digest_of_file(item.name, ".json");
  if (!digest) return bad(kForeign);
  if (place(kNoRoot, *digest) != item.name) return bad(kMisplaced);
  return find(*digest).status();
}

// A file of a writer that may still be at it: a temporary one, or one whose metadata, which comes last, is not there
// yet. `status`: what is wrong with it.
bool is_being_written(const CacheItem& item, const Status& status) {
  return item.problem.ok() && (is_abandoned_temporary(item.name) || status.message() == kNoMetadata) &&
         !is_older_than(item.info.written, kLeftoverAge);
}

// Whether a file that a walk has come across is there no more.
bool is_gone(const CacheTree& tree, const fs::path& name) {
  const auto folder = tree.open(name.parent_path());
  const Status status = folder.ok() ? folder->look(name.filename()).status() : folder.status();
  return status.code() == Code::kNotFound;
}

// The problem of a file that a walk has come across.
using Judge = std::function<Status(const CacheItem&)>;

// A folder that does not count is none.
Status no_folder(const Status& status) { return Status(Code::kNotFound, status.message()); }

// The text of a record or a choice.
Result<std::string> read_text(const CacheTree& tree, const fs::path& name, size_t max) {
  const auto folder = tree.open(name.parent_path());
  if (!folder.ok()) return is_system_failure(folder.status()) ? folder.status() : no_folder(folder.status());
  return folder->read(name.filename(), max);
}

// Entries that `find` reads, of the files below `folder` that are in their `place`, by digest.
template <typename Stored, typename Place, typename Find>
std::vector<Stored> stored_texts(const CacheTree& tree, const fs::path& folder, const Place& place, const Find& find,
                                 Status* failure) {
  std::vector<Stored> all;
  tree.walk(folder, 1, nullptr, [&](const CacheItem& item) {
    keep_failure(item.problem, failure);
    const auto digest = item.problem.ok() ? digest_of_file(item.name, ".json") : std::nullopt;
    if (!digest || place(kNoRoot, *digest) != item.name) return;
    auto found = find(*digest);
    keep_failure(found.status(), failure);
    if (found.ok()) all.push_back({std::move(found).value(), *digest, tree.root()});
  });
  std::sort(all.begin(), all.end(), [](const Stored& a, const Stored& b) { return a.digest < b.digest; });
  return all;
}

}  // namespace

bool DirectoryLayer::missing() const {
  std::error_code error;
  return !writable_ && !fs::exists(path(), error);
}

Result<LoadedArtifact> DirectoryLayer::find_artifact(std::string_view arch, std::string_view digest) const {
  return load_artifact(tree_, arch, digest);
}

Result<TuningRecord> DirectoryLayer::find_record(std::string_view digest) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_text(tree_, record_file(kNoRoot, digest), kMaxRecordBytes));
  return parse_record(text, digest);
}

Result<ChoiceRecord> DirectoryLayer::find_choice(std::string_view digest) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_text(tree_, choice_file(kNoRoot, digest), kMaxChoiceBytes));
  return parse_choice(text, digest);
}

std::vector<StoredArtifact> DirectoryLayer::artifacts(Status* failure) const {
  std::vector<StoredArtifact> all;
  for_each_artifact_file(tree_, [&](const std::string& arch, const CacheItem& item) {
    keep_failure(item.problem, failure);
    const auto digest = item.problem.ok() ? digest_of_file(item.name, ".json") : std::nullopt;
    if (!digest || ArtifactFiles(kNoRoot, arch, *digest).metadata != item.name) return;
    auto seen = see_artifact(tree_, arch, *digest);
    keep_failure(seen.status(), failure);
    if (!seen.ok()) return;
    all.push_back({std::move(seen->metadata), *digest, path(), seen->bytes, seen->last_used.seconds});
  });
  std::sort(all.begin(), all.end(), [](const StoredArtifact& a, const StoredArtifact& b) {
    return std::tie(a.metadata.key.arch, a.digest) < std::tie(b.metadata.key.arch, b.digest);
  });
  return all;
}

std::vector<StoredRecord> DirectoryLayer::records(Status* failure) const {
  const auto find = [this](const std::string& digest) { return find_record(digest); };
  return stored_texts<StoredRecord>(tree_, tuning_root(kNoRoot), record_file, find, failure);
}

std::vector<StoredChoice> DirectoryLayer::choices(Status* failure) const {
  const auto find = [this](const std::string& digest) { return find_choice(digest); };
  return stored_texts<StoredChoice>(tree_, choices_root(kNoRoot), choice_file, find, failure);
}

std::vector<VerifiedFile> DirectoryLayer::folders_passed_over() const {
  if (missing()) return {{path(), kMissingLayer}};
  std::vector<VerifiedFile> folders;
  for_each_item(tree_, [&](const CacheItem& item) {
    if (const auto path = folder_passed_over(tree_, item))
      folders.push_back({*path, item.problem.message(), is_system_failure(item.problem)});
  });
  return folders;
}

std::vector<VerifiedFile> DirectoryLayer::verify() const {
  if (!health().ok()) {
    const Status problem = tree_.problem();
    return {{path(), problem.message(), is_system_failure(problem)}};
  }
  if (missing()) return {{path(), kMissingLayer}};
  std::vector<VerifiedFile> report;
  const auto add = [&](const CacheItem& item, const Status& status) {
    // A good entry is one line, its metadata's; its other files have one only when something is wrong with them.
    if (status.ok() ? !digest_of_file(item.name, ".json") : is_being_written(item, status)) return;
    report.push_back({(fs::path(path()) / item.name).native(), status.message(), is_system_failure(status)});
  };
  // Others may remove or replace any file between two looks at it: what is bad is judged again, after all the rest.
  struct BadFile {
    CacheItem item;
    Judge judge;
    Status status;
  };
  std::vector<BadFile> bad_files;
  const auto judge_first = [&](const CacheItem& item, const Judge& judge) {
    if (const Status status = judge(item); status.ok()) {
      add(item, status);
    } else {
      bad_files.push_back({item, judge, status});
    }
  };
  for_each_artifact_file(tree_, [&](const std::string& arch, const CacheItem& item) {
    judge_first(item, [this, arch](const CacheItem& file) { return problem_of_artifact(tree_, arch, file); });
  });
  tree_.walk(tuning_root(kNoRoot), 1, nullptr, [&](const CacheItem& item) {
    const auto find = [this](const std::string& digest) { return find_record(digest); };
    judge_first(item, [find](const CacheItem& file) { return problem_of_text(file, record_file, find); });
  });
  tree_.walk(choices_root(kNoRoot), 1, nullptr, [&](const CacheItem& item) {
    const auto find = [this](const std::string& digest) { return find_choice(digest); };
    judge_first(item, [find](const CacheItem& file) { return problem_of_text(file, choice_file, find); });
  });
  const auto is_foreign = [](std::string_view name) { return !is_of_layout(name); };
  tree_.walk(version_folder(kNoRoot), 0, is_foreign, [&](const CacheItem& item) {
    if (item.holds_others) return;  // it was named above
    judge_first(item, [](const CacheItem&) { return bad(kForeign); });
  });
  const auto is_no_more = [&](BadFile& file) {
    file.status = file.judge(file.item);
    if (file.status.ok()) add(file.item, file.status);
    return file.status.ok() || file.status.code() == Code::kNotFound || is_gone(tree_, file.item.name);
  };
  for (int look = 1; look < kJudgements && !bad_files.empty(); ++look) {
    std::this_thread::sleep_for(kPauseToJudge);
    std::erase_if(bad_files, is_no_more);
  }
  for (const BadFile& file : bad_files) add(file.item, file.status);
  std::sort(report.begin(), report.end(), [](const VerifiedFile& a, const VerifiedFile& b) { return a.path < b.path; });
  // A folder on the way to both is named once.
  const auto same = [](const VerifiedFile& a, const VerifiedFile& b) { return a.path == b.path; };
  report.erase(std::unique(report.begin(), report.end(), same), report.end());
  return report;
}

}  // namespace hstujit
