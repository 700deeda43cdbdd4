#include "autotune_cache/store/bundle_layer.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "compiler/support/files.h"
#include "compiler/support/folder.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// The parts of a name in a bundle.
struct EntryName {
  enum class Kind { kMetadata, kCubin, kRecord, kChoice };
  Kind kind = Kind::kCubin;
  std::string arch;  // of a kernel
  std::string digest;
};
using Kind = EntryName::Kind;

std::optional<EntryName> parse_name(const std::string& name) {
  const std::filesystem::path path(name);
  if (const auto digest = digest_of_file(path, ".json")) {
    if (name == record_file(kNoRoot, *digest).native()) return EntryName{Kind::kRecord, "", *digest};
    if (name == choice_file(kNoRoot, *digest).native()) return EntryName{Kind::kChoice, "", *digest};
  }
  const std::string arch = path.parent_path().parent_path().filename().native();
  if (!is_arch_name(arch)) return std::nullopt;
  for (const std::string_view extension : {".json", ".cubin"}) {
    const auto digest = digest_of_file(path, extension);
    if (!digest) continue;
    const ArtifactFiles files(kNoRoot, arch, *digest);
    if (name == files.metadata.native()) return EntryName{Kind::kMetadata, arch, *digest};
    if (name == files.cubin.native()) return EntryName{Kind::kCubin, arch, *digest};
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> BundleLayer::read() const {
  if (trust_ == Trust::kAll) {
    HSTUJIT_ASSIGN_OR_RETURN(const FileHead head, read_file_head(path(), kBundleHeadBytes));
    HSTUJIT_RETURN_IF_ERROR(check_head(head.bytes, head.size));
    return read_file(path(), kMaxBundleBytes);
  }
  // Through the links that lead to it, and no further ones.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path(), error);
  if (error) return file_error("open", path(), error.value());
  if (const std::string problem = distrust_of_place(path()); !problem.empty())
    return Status(Code::kIo, fmt::format("cannot read {}: {}", quote(path()), problem));
  HSTUJIT_ASSIGN_OR_RETURN(const Folder folder, Folder::open(file.parent_path(), trust_));
  FileInfo info;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string head, folder.read_head(file.filename(), kBundleHeadBytes, &info));
  HSTUJIT_RETURN_IF_ERROR(check_head(head, info.bytes));
  return folder.read(file.filename(), kMaxBundleBytes);
}

Result<std::shared_ptr<const Bundle>> BundleLayer::load() const {
  HSTUJIT_ASSIGN_OR_RETURN(std::string bytes, read());
  auto unpacked = Bundle::unpack(std::move(bytes), decode_);
  if (unpacked.ok()) return unpacked;
  return no_bundle(unpacked.status());
}

// One that is too large is for the reader to name.
Status BundleLayer::check_head(std::string_view head, uint64_t size) const {
  return size > kMaxBundleBytes ? Status() : no_bundle(check_bundle_head(head, size));
}

Status BundleLayer::no_bundle(const Status& status) const {
  // It may be whole where the system failed, or where there is no library that decompresses it.
  const bool unread = is_system_failure(status) || status.code() == Code::kNoCompiler;
  const std::string_view problem = unread ? "cannot be read" : "is no whole bundle";
  return status.with_context(fmt::format("the file {} {}", printable(path()), problem));
}

const Bundle* BundleLayer::bundle() const {
  std::call_once(once_, [this] {
    auto loaded = load();
    status_ = loaded.status();
    if (loaded.ok()) bundle_ = std::move(loaded).value();
    if (!status_.ok()) log_.event(LogCategory::kCache, "bad_bundle", {{"path", path()}, {"reason", status_.message()}});
  });
  return bundle_.get();
}

Status BundleLayer::health() const {
  bundle();
  return status_;
}

std::string BundleLayer::sha256() const { return bundle() == nullptr ? "" : bundle_->sha256(); }

std::vector<VerifiedFile> BundleLayer::folders_passed_over() const {
  const Status status = health();
  if (status.ok()) return {};
  return {{path(), status.message(), is_system_failure(status)}};
}

Result<std::string_view> BundleLayer::file(const std::filesystem::path& name, size_t max) const {
  const Status none(Code::kNotFound, "it is not in the bundle");
  if (bundle() == nullptr) return none;
  const auto found = bundle_->files().find(name.native());
  if (found == bundle_->files().end()) return none;
  const std::string_view bytes = found->second;
  if (bytes.size() <= max) return bytes;
  return Status(Code::kIo, fmt::format("{} has {} bytes; the most for a file of its kind is {}",
                                       quote(name.filename().native()), bytes.size(), max));
}

Result<LoadedArtifact> BundleLayer::find_artifact(std::string_view arch, std::string_view digest) const {
  const ArtifactFiles names(kNoRoot, arch, digest);
  HSTUJIT_ASSIGN_OR_RETURN(const std::string_view metadata, file(names.metadata, kMaxMetadataBytes));
  const Result<std::string_view> cubin = file(names.cubin, kMaxCubinBytes);
  if (cubin.ok()) {
    return within_memory("the cubin", [&] { return check_artifact(metadata, std::string(*cubin), arch, digest); });
  }
  if (cubin.status().code() != Code::kNotFound) return cubin.status();
  return Status(Code::kIo, "the bundle has its metadata and no cubin");
}

Result<TuningRecord> BundleLayer::find_record(std::string_view digest) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string_view text, file(record_file(kNoRoot, digest), kMaxRecordBytes));
  return parse_record(text, digest);
}

Result<ChoiceRecord> BundleLayer::find_choice(std::string_view digest) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string_view text, file(choice_file(kNoRoot, digest), kMaxChoiceBytes));
  return parse_choice(text, digest);
}

std::vector<StoredArtifact> BundleLayer::artifacts(Status* failure) const {
  std::vector<StoredArtifact> all;
  if (bundle() == nullptr) {
    keep_failure(status_, failure);
    return all;
  }
  for (const auto& [name, bytes] : bundle_->files()) {
    const auto entry = parse_name(name);
    if (!entry || entry->kind != Kind::kMetadata) continue;
    auto loaded = find_artifact(entry->arch, entry->digest);
    keep_failure(loaded.status(), failure);
    if (!loaded.ok()) continue;
    const uint64_t size = bytes.size() + loaded->cubin.size();
    all.push_back({std::move(loaded->metadata), entry->digest, path(), size, 0});
  }
  return all;
}

std::vector<StoredRecord> BundleLayer::records(Status* failure) const {
  std::vector<StoredRecord> all;
  if (bundle() == nullptr) {
    keep_failure(status_, failure);
    return all;
  }
  for (const auto& [name, bytes] : bundle_->files()) {
    const auto entry = parse_name(name);
    if (!entry || entry->kind != Kind::kRecord) continue;
    auto record = find_record(entry->digest);
    keep_failure(record.status(), failure);
    if (record.ok()) all.push_back({std::move(record).value(), entry->digest, path()});
  }
  return all;
}

std::vector<StoredChoice> BundleLayer::choices(Status* failure) const {
  std::vector<StoredChoice> all;
  if (bundle() == nullptr) {
    keep_failure(status_, failure);
    return all;
  }
  for (const auto& [name, bytes] : bundle_->files()) {
    const auto entry = parse_name(name);
    if (!entry || entry->kind != Kind::kChoice) continue;
    auto choice = find_choice(entry->digest);
    keep_failure(choice.status(), failure);
    if (choice.ok()) all.push_back({std::move(choice).value(), entry->digest, path()});
  }
  return all;
}

std::vector<VerifiedFile> BundleLayer::verify() const {
  if (bundle() == nullptr) return {{path(), status_.message(), is_system_failure(status_)}};
  std::vector<VerifiedFile> report;
  for (const auto& [name, bytes] : bundle_->files()) {
    const auto entry = parse_name(name);
    Status status;
    if (!entry) {
      status = Status(Code::kIo, "it is not a file of the cache");
    } else if (entry->kind == Kind::kRecord) {
      status = find_record(entry->digest).status();
    } else if (entry->kind == Kind::kChoice) {
      status = find_choice(entry->digest).status();
    } else if (entry->kind == Kind::kMetadata) {
      status = find_artifact(entry->arch, entry->digest).status();
    } else {
      // A good entry is one line, its metadata's.
      if (bundle_->files().contains(ArtifactFiles(kNoRoot, entry->arch, entry->digest).metadata.native())) continue;
      status = Status(Code::kIo, "it has no metadata");
    }
    report.push_back({fmt::format("{}/{}", path(), name), status.message(), is_system_failure(status)});
  }
  return report;
}

}  // namespace hstujit
