// The store of cubins: a directory to read and write over layers to read.
//
// No trouble with files is an error of the caller's: a bad entry is a logged miss that the next put replaces, and a
// directory that cannot be written is logged once. Any number of threads and processes may use the same directories at
// the same time, without locks, and may be killed at any moment: see docs/cache-format.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/files/cache_key.h"
#include "autotune_cache/store/cache_listing.h"
#include "autotune_cache/store/not_kept.h"
#include "compiler/support/log.h"
#include "compiler/support/status.h"

namespace hstujit {

struct Artifact {
  std::string cubin;
  ArtifactInfo info;
  std::string directory;  // the layer that it came from
};

// A text for people beside an entry: what the cubin was compiled from, or what the compiler said.
struct ArtifactNote {
  std::string_view extension;  // ".mlir" ".cu" ".log"
  std::string text;
};

struct PruneRequest {
  std::optional<uint64_t> max_bytes;  // least recently used entries go until the rest fits
  std::string nvrtc;                  // when set, entries built by that version go whatever the size
};

struct PruneReport {
  int64_t removed = 0;
  uint64_t removed_bytes = 0;
  int64_t kept = 0;
  uint64_t kept_bytes = 0;
  int64_t not_removed = 0;  // entries that had to go and could not; they count as kept
  Status not_removed_why;   // of the first of them
  int64_t leftovers = 0;    // files of interrupted writers that were removed
  Status unread;            // why some of the directory, or all of it, could not be looked at
};

// Which layers a look-up asks.
enum class Reach {
  kAll,
  kNear,  // those of this machine: for what no remote layer is likely to have
};

class ArtifactStore {
 public:
  // `max_bytes` bounds the user directory: put prunes from time to time. 0: unbounded.
  ArtifactStore(CacheLayers layers, Log log, uint64_t max_bytes = 0);
  ArtifactStore(const CacheDirectories& directories, const Log& log, uint64_t max_bytes = 0);
  ~ArtifactStore();
  ArtifactStore(const ArtifactStore&) = delete;
  ArtifactStore& operator=(const ArtifactStore&) = delete;

  // The cubin, checked against its length and SHA-256, from the first layer that has a good one. A remote layer's is
  // kept in the user directory.
  std::optional<Artifact> find(const ArtifactKey& key, Reach reach = Reach::kAll);

  // The same, of all layers, and nothing is written: neither what a remote layer gives, nor the time of the use.
  std::optional<Artifact> peek(const ArtifactKey& key) const;

  // Keeps a cubin in the user directory; an entry that is good already is left as it is. True when the directory has
  // it; bytes that are no cubin are not kept. What is new is offered to the other layers.
  bool put(const ArtifactKey& key, std::string_view cubin, const ArtifactInfo& info);

  // The entries that put, or a look-up in a remote layer, could not keep until now.
  NotKept::Summary not_kept() const;
  // Why that of this digest was not; empty where it was.
  std::string why_not_kept(const std::string& digest) const;

  // Keeps notes beside an entry of the user directory, in place of those that are there.
  void annotate(const ArtifactKey& key, const std::vector<ArtifactNote>& notes);

  // For an entry that is whole and yet of no use: removes it from the user directory, if its cubin is still this one.
  // A read-only directory keeps its copy, but what is put afterwards is found before it; a remote's is passed over.
  void drop(const ArtifactKey& key, std::string_view cubin);

  // Entries with readable metadata, of all layers, by layer, then arch and digest.
  std::vector<StoredArtifact> list() const;

  // Reads everything of every layer, tuning records too. Anything that a look-up would not accept has a problem.
  std::vector<VerifiedFile> verify() const;

  // Prunes the user directory. Entries that this store found or put stay, whatever the request.
  PruneReport prune(const PruneRequest& request);

  const CacheLayers& layers() const { return layers_; }
  const CacheDirectories& directories() const { return directories_; }

 private:
  struct State;

  std::optional<Artifact> find_in(const CacheLayer& layer, const ArtifactKey& key, const std::string& digest);
  bool keep(const ArtifactMetadata& metadata, const std::string& digest, std::string_view cubin);
  void warn_once(const std::string& what, std::string_view event, std::string_view path, std::string_view reason);
  void prune_sometimes(uint64_t written);

  CacheLayers layers_;
  CacheDirectories directories_;  // of the layers; `user` is what is written
  const CacheTree* user_;         // its files, of the first layer; null: nothing is written
  Log log_;
  uint64_t max_bytes_;
  std::unique_ptr<State> state_;
};

}  // namespace hstujit
