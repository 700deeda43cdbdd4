#include "autotune_cache/artifact_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <system_error>

#include "autotune_cache/cache_layout.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// A rename cannot replace a folder. One with the name of an entry is nobody's: it goes.
void remove_folder_in_the_way(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) fs::remove_all(path, error);
}

Result<LoadedArtifact> load_once(const ArtifactFiles& files, std::string_view digest) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_regular_file(files.metadata));
  Result<std::string> cubin = read_regular_file(files.cubin);
  if (!cubin.ok()) return Status(Code::kIo, cubin.status().message());  // metadata without a cubin is a bad entry
  return check_artifact(text, std::move(cubin).value(), digest);
}

}  // namespace

ArtifactFiles::ArtifactFiles(const std::string& root, std::string_view arch, std::string_view digest)
    : cubin(artifact_folder(root, arch, digest) / fmt::format("{}.cubin", digest)),
      metadata(artifact_folder(root, arch, digest) / fmt::format("{}.json", digest)) {}

fs::path ArtifactFiles::note(std::string_view extension) const { return fs::path(cubin).replace_extension(extension); }

bool is_cubin(std::string_view bytes) {
  constexpr size_t kHeaderBytes = 64;  // of a 64-bit ELF image
  return bytes.size() >= kHeaderBytes && bytes.starts_with("\x7f\x45\x4c\x46");
}

Result<LoadedArtifact> check_artifact(std::string_view metadata, std::string cubin, std::string_view digest) {
  LoadedArtifact loaded;
  Result<ArtifactMetadata> parsed = parse_metadata(metadata, digest);
  if (!parsed.ok()) return Status(Code::kIo, "metadata: " + parsed.status().message());
  loaded.metadata = std::move(parsed).value();
  loaded.cubin = std::move(cubin);
  if (loaded.cubin.size() != loaded.metadata.size)
    return Status(Code::kIo, fmt::format("the cubin has {} bytes, its metadata says {}", loaded.cubin.size(),
                                         loaded.metadata.size));
  if (sha256_hex(loaded.cubin) != loaded.metadata.sha256)
    return Status(Code::kIo, "the cubin's SHA-256 differs from its metadata");
  if (!is_cubin(loaded.cubin))
    return Status(Code::kIo, fmt::format("the cubin, {} bytes, is no ELF image", loaded.cubin.size()));
  return loaded;
}

Result<LoadedArtifact> load_artifact(const ArtifactFiles& files, std::string_view digest) {
  Result<LoadedArtifact> loaded = load_once(files, digest);
  // Between a writer's two renames, or a pruner's two removals, the files do not match: look again.
  if (!loaded.ok() && loaded.status().code() == Code::kIo) return load_once(files, digest);
  return loaded;
}

Status save_artifact(const ArtifactFiles& files, const ArtifactMetadata& metadata, std::string_view cubin) {
  HSTUJIT_RETURN_IF_ERROR(make_directories(files.cubin.parent_path()));
  remove_folder_in_the_way(files.cubin);
  remove_folder_in_the_way(files.metadata);
  HSTUJIT_RETURN_IF_ERROR(write_file_atomically(files.cubin, cubin));
  return write_file_atomically(files.metadata, format_metadata(metadata));
}

Status remove_artifact(const ArtifactFiles& files) {
  std::error_code error;
  fs::remove(files.metadata, error);
  if (error) return file_error("remove", files.metadata, error.value());
  std::error_code ignored;  // of a note, which nothing reads
  for (const std::string_view extension : kNoteExtensions) fs::remove(files.note(extension), ignored);
  fs::remove(files.cubin, error);
  if (error) return file_error("remove", files.cubin, error.value());
  return {};
}

std::optional<FileTimes> file_times(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileTimes{static_cast<uint64_t>(info.st_size),
                   static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void for_each_artifact_file(const std::string& root,
                            const std::function<void(const std::string&, const fs::path&)>& visit) {
  std::error_code error;
  fs::directory_iterator folder(version_folder(root), error);
  while (!error && folder != fs::directory_iterator()) {
    const std::string arch = folder->path().filename().native();
    if (is_arch_name(arch)) for_each_file(folder->path(), [&](const fs::path& path) { visit(arch, path); });
    folder.increment(error);
  }
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
