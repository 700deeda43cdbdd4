#include "autotune_cache/files/artifact_files.h"

#include <fmt/format.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "autotune_cache/files/cache_layout.h"
#include "autotune_cache/files/cubin_header.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

Status misplaced(const ArtifactMetadata& metadata, std::string_view arch) {
  return Status(Code::kIo, fmt::format("it is of {}, and is in the folder of {}", metadata.key.arch, arch));
}

Result<ArtifactMetadata> parse_metadata_of(std::string_view text, std::string_view arch, std::string_view digest) {
  Result<ArtifactMetadata> parsed = parse_metadata(text, digest);
  if (!parsed.ok()) return parsed.status().with_context("metadata");
  if (parsed->key.arch != arch) return misplaced(*parsed, arch);
  return parsed;
}

Status of_another_size(uint64_t bytes, const ArtifactMetadata& metadata) {
  return Status(Code::kIo, fmt::format("the cubin has {}, its metadata says {}",
                                       counted(static_cast<int64_t>(bytes), "byte"), metadata.size));
}

// Metadata without a cubin is a bad entry.
Status no_cubin(const Status& status) {
  return is_system_failure(status) ? status : Status(Code::kIo, status.message());
}

Result<LoadedArtifact> load_once(const Folder& folder, const ArtifactFiles& files, std::string_view arch,
                                 std::string_view digest) {
  FileInfo info;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, folder.read(files.metadata.filename(), kMaxMetadataBytes, &info));
  Result<std::string> cubin = folder.read(files.cubin.filename(), kMaxCubinBytes);
  if (!cubin.ok()) return no_cubin(cubin.status());
  Result<LoadedArtifact> loaded = check_artifact(text, std::move(cubin).value(), arch, digest);
  if (loaded.ok()) loaded->last_used = info.written;
  return loaded;
}

Result<SeenArtifact> see_once(const Folder& folder, const ArtifactFiles& files, std::string_view arch,
                              std::string_view digest) {
  SeenArtifact seen;
  FileInfo info;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, folder.read(files.metadata.filename(), kMaxMetadataBytes, &info));
  HSTUJIT_ASSIGN_OR_RETURN(seen.metadata, parse_metadata_of(text, arch, digest));
  FileInfo cubin;
  const auto header = folder.read_head(files.cubin.filename(), kCubinHeaderBytes, &cubin);
  if (!header.ok()) return no_cubin(header.status());
  if (cubin.bytes != seen.metadata.size || cubin.bytes > kMaxCubinBytes)
    return of_another_size(cubin.bytes, seen.metadata);
  HSTUJIT_RETURN_IF_ERROR(check_cubin_arch(*header, arch));
  seen.bytes = info.bytes + cubin.bytes;
  seen.last_used = info.written;
  return seen;
}

// The result of `look` at the entry's folder. Between a writer's two renames, or a pruner's two removals, the files do
// not match: it looks again.
template <typename Look>
auto look_twice(const CacheTree& tree, std::string_view arch, std::string_view digest, const Look& look)
    -> decltype(look(std::declval<const Folder&>(), std::declval<const ArtifactFiles&>(), arch, digest)) {
  const ArtifactFiles files(kNoRoot, arch, digest);
  const auto folder = tree.open(files.folder());
  if (!folder.ok() && is_system_failure(folder.status())) return folder.status();
  if (!folder.ok()) return Status(Code::kNotFound, folder.status().message());
  auto found = look(*folder, files, arch, digest);
  if (!found.ok() && found.status().code() == Code::kIo) return look(*folder, files, arch, digest);
  return found;
}

}  // namespace

ArtifactFiles::ArtifactFiles(const std::string& root, std::string_view arch, std::string_view digest)
    : cubin(artifact_folder(root, arch, digest) / fmt::format("{}.cubin", digest)),
      metadata(artifact_folder(root, arch, digest) / fmt::format("{}.json", digest)) {}

fs::path ArtifactFiles::note(std::string_view extension) const { return fs::path(cubin).replace_extension(extension); }

Result<LoadedArtifact> check_artifact(std::string_view metadata, std::string cubin, std::string_view arch,
                                      std::string_view digest) {
  LoadedArtifact loaded;
  HSTUJIT_ASSIGN_OR_RETURN(loaded.metadata, parse_metadata_of(metadata, arch, digest));
  loaded.cubin = std::move(cubin);
  if (loaded.cubin.size() != loaded.metadata.size) return of_another_size(loaded.cubin.size(), loaded.metadata);
  if (sha256_hex(loaded.cubin) != loaded.metadata.sha256)
    return Status(Code::kIo, "the cubin's SHA-256 differs from its metadata");
  if (!is_cubin(loaded.cubin))
    return Status(Code::kIo, fmt::format("the cubin, {} bytes, is no ELF image", loaded.cubin.size()));
  HSTUJIT_RETURN_IF_ERROR(check_cubin_arch(loaded.cubin, arch));
  return loaded;
}

Result<LoadedArtifact> load_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest) {
  return look_twice(tree, arch, digest, load_once);
}

Result<SeenArtifact> see_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest) {
  return look_twice(tree, arch, digest, see_once);
}

Status save_artifact(const Folder& folder, const ArtifactFiles& files, const ArtifactMetadata& metadata,
                     std::string_view cubin) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_metadata(metadata));
  // A rename cannot replace a folder. One with the name of an entry is nobody's: it goes.
  for (const fs::path& file : {files.cubin, files.metadata}) folder.remove_folder(file.filename());
  HSTUJIT_RETURN_IF_ERROR(folder.write(files.cubin.filename(), cubin));
  return folder.write(files.metadata.filename(), text);
}

Status remove_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest) {
  const ArtifactFiles files(kNoRoot, arch, digest);
  const auto folder = tree.open(files.folder());
  if (!folder.ok()) return folder.status().code() == Code::kNotFound ? Status() : folder.status();
  HSTUJIT_RETURN_IF_ERROR(folder->remove(files.metadata.filename()));
  for (const std::string_view extension : kNoteExtensions) {
    [[maybe_unused]] const Status ignored = folder->remove(files.note(extension).filename());  // nothing reads notes
  }
  return folder->remove(files.cubin.filename());
}

std::string arch_of(const CacheItem& item) {
  const auto folder = std::next(item.name.begin());
  return folder != item.name.end() && is_arch_name(folder->native()) ? folder->native() : std::string();
}

void for_each_artifact_file(const CacheTree& tree,
                            const std::function<void(const std::string&, const CacheItem&)>& visit) {
  tree.walk(version_folder(kNoRoot), 2, is_arch_name, [&](const CacheItem& item) { visit(arch_of(item), item); });
}

void for_each_item(const CacheTree& tree, const std::function<void(const CacheItem&)>& visit) {
  std::error_code error;
  const fs::file_status root = fs::status(tree.root(), error);  // one look: others may remove it at any time
  if (fs::exists(root) && !fs::is_directory(root)) {
    visit({".", Status(Code::kIo, "it is no directory"), {}, true});
    return;
  }
  tree.walk(version_folder(kNoRoot), 2, is_of_layout, visit);
}

std::optional<std::string> folder_passed_over(const CacheTree& tree, const CacheItem& item) {
  if (!item.holds_others || item.problem.ok()) return std::nullopt;
  return item.name == "." ? tree.root() : (fs::path(tree.root()) / item.name).native();
}

std::optional<std::string> digest_of_file(const fs::path& path, std::string_view extension) {
  const std::string name = path.filename().native();
  if (!name.ends_with(extension)) return std::nullopt;
  std::string digest = name.substr(0, name.size() - extension.size());
  if (!is_digest(digest)) return std::nullopt;
  return digest;
}

std::pair<std::optional<std::string>, std::string_view> digest_of_note(const fs::path& path) {
  for (const std::string_view extension : kNoteExtensions) {
    if (auto digest = digest_of_file(path, extension)) return {std::move(digest), extension};
  }
  return {};
}

}  // namespace hstujit
