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

#include "autotune_cache/files/artifact_metadata.h"
#include "autotune_cache/files/cache_tree.h"
#include "compiler/support/status.h"

namespace hstujit {

// Extensions of the notes that may lie beside an entry: texts for people, which nothing here reads.
inline constexpr std::string_view kNoteExtensions[] = {".mlir", ".cu", ".log"};

struct ArtifactFiles {
  std::filesystem::path cubin;
  std::filesystem::path metadata;

  std::filesystem::path folder() const { return cubin.parent_path(); }
  std::filesystem::path note(std::string_view extension) const;

  ArtifactFiles(const std::string& root, std::string_view arch, std::string_view digest);
};

struct LoadedArtifact {
  ArtifactMetadata metadata;
  std::string cubin;
  FileTime last_used = {};  // when the metadata file was written; 0 for what is no file
};

// kNotFound when there is no entry, or when its folder does not count, which is logged; kIo with the reason when there
// is one that must not be used.
Result<LoadedArtifact> load_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest);

// An entry of the folder of `arch` from its two texts, as load_artifact checks it.
Result<LoadedArtifact> check_artifact(std::string_view metadata, std::string cubin, std::string_view arch,
                                      std::string_view digest);

// Facts about an entry that need no bytes of its cubin. `bytes` are those of both files.
struct SeenArtifact {
  ArtifactMetadata metadata;
  uint64_t bytes = 0;
  FileTime last_used = {};  // as LoadedArtifact has it
};
// The same as load_artifact, but that it reads the cubin's header alone.
Result<SeenArtifact> see_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest);

// Into the folder of its arch and digest: the cubin first, then the metadata, so that whoever sees metadata sees a
// complete entry. Replaces what has these names.
Status save_artifact(const Folder& folder, const ArtifactFiles& files, const ArtifactMetadata& metadata,
                     std::string_view cubin);

// With its notes. The metadata first, so that an interrupted removal leaves no entry that looks complete; an entry
// whose metadata cannot be removed stays whole. Files that are gone already are no trouble.
Status remove_artifact(const CacheTree& tree, std::string_view arch, std::string_view digest);

// Calls visit(arch, item) for what lies in the folders of cubins, and for those folders where they do not count.
void for_each_artifact_file(const CacheTree& tree,
                            const std::function<void(const std::string&, const CacheItem&)>& visit);

// Calls visit for what lies in the folders of cubins, tuning records and choices, for those folders where they do not
// count, and for the root where that is no directory.
void for_each_item(const CacheTree& tree, const std::function<void(const CacheItem&)>& visit);
// The path of a folder that does not count, with all that is in it; nothing for any other item.
std::optional<std::string> folder_passed_over(const CacheTree& tree, const CacheItem& item);
// The arch of the folder of cubins that the item is, or lies in; empty for any other item.
std::string arch_of(const CacheItem& item);

// The digest of a file named "<digest><extension>"; nothing for any other name.
std::optional<std::string> digest_of_file(const std::filesystem::path& path, std::string_view extension);
// The digest and the extension of a note; no digest for any other name.
std::pair<std::optional<std::string>, std::string_view> digest_of_note(const std::filesystem::path& path);

}  // namespace hstujit
