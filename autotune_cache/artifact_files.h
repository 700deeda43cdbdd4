// The two files of one entry and the notes beside them, on disk: how they are written, read and told apart from
// anything else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "autotune_cache/artifact_metadata.h"
#include "compiler/support/status.h"

namespace hstujit {

// Of the notes that may lie beside an entry: texts for people, which nothing here reads.
inline constexpr std::string_view kNoteExtensions[] = {".mlir", ".cu", ".log"};

struct ArtifactFiles {
  std::filesystem::path cubin;
  std::filesystem::path metadata;

  std::filesystem::path note(std::string_view extension) const;

  ArtifactFiles(const std::string& root, std::string_view arch, std::string_view digest);
};

// Whether these bytes can be a cubin at all, which is an ELF image: no bytes, or others, are none, whatever their
// checksum says, and the driver would read past the end of a short one.
bool is_cubin(std::string_view bytes);

struct LoadedArtifact {
  ArtifactMetadata metadata;
  std::string cubin;
};

// kNotFound when there is no entry; kIo with the reason when there is one that must not be used.
Result<LoadedArtifact> load_artifact(const ArtifactFiles& files, std::string_view digest);

// An entry from its two texts, as load_artifact checks it.
Result<LoadedArtifact> check_artifact(std::string_view metadata, std::string cubin, std::string_view digest);

// The cubin first, then the metadata: whoever sees metadata sees a complete entry.
Status save_artifact(const ArtifactFiles& files, const ArtifactMetadata& metadata, std::string_view cubin);

// With its notes. The metadata first, so that an interrupted removal leaves no entry that looks complete; an entry
// whose metadata cannot be removed stays whole. Files that are gone already are no trouble.
Status remove_artifact(const ArtifactFiles& files);

struct FileTimes {
  uint64_t bytes = 0;
  int64_t nanoseconds = 0;  // of the last write, since 1970
};
// Nothing for what is no regular file.
std::optional<FileTimes> file_times(const std::filesystem::path& path);

// Calls visit(arch, path) for each file in the folders of cubins below `root`.
void for_each_artifact_file(const std::string& root,
                            const std::function<void(const std::string&, const std::filesystem::path&)>& visit);

// The digest of a file named "<digest><extension>"; nothing for any other name.
std::optional<std::string> digest_of_file(const std::filesystem::path& path, std::string_view extension);
// The digest and the extension of a note; no digest for any other name.
std::pair<std::optional<std::string>, std::string_view> digest_of_note(const std::filesystem::path& path);

}  // namespace hstujit
