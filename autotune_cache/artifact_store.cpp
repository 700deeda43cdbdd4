#include "autotune_cache/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "autotune_cache/artifact_files.h"
#include "autotune_cache/artifact_state.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// A hit refreshes the entry's time at most this often, so that a busy cache is not rewritten all the time.
constexpr std::chrono::hours kTouchInterval{1};
// A prune scans the directory, so it follows only after this part of the bound has been written.
constexpr uint64_t kPruneFraction = 16;

// To the present, which whoever may write the file may set; a time that is named may be set by its owner alone. A file
// that this process cannot write keeps its time.
void touch(const fs::path& path) {
  if (!is_older_than(path, kTouchInterval)) return;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace

ArtifactStore::ArtifactStore(CacheLayers layers, Log log, uint64_t max_bytes)
    : layers_(std::move(layers)),
      directories_(directories_of(layers_)),
      log_(std::move(log)),
      max_bytes_(max_bytes),
      state_(std::make_unique<State>()) {}

ArtifactStore::ArtifactStore(const CacheDirectories& directories, const Log& log, uint64_t max_bytes)
    : ArtifactStore(open_layers(directories, log), log, max_bytes) {}

ArtifactStore::~ArtifactStore() = default;

void ArtifactStore::warn_once(const std::string& what, std::string_view event, std::string_view path,
                              std::string_view reason) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->warned.insert(what).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"path", path}, {"reason", reason}});
}

std::optional<Artifact> ArtifactStore::find(const ArtifactKey& key, Reach reach) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) {
    log_.event(LogCategory::kCache, "miss", {{"reason", digest.status().message()}});
    return std::nullopt;
  }
  for (const CacheLayerPtr& layer : layers_) {
    if (reach == Reach::kNear && layer->remote()) continue;
    if (std::optional<Artifact> found = find_in(*layer, key, *digest)) {
      log_.event(LogCategory::kCache, "hit", {{"digest", *digest}, {"directory", layer->path()}});
      return found;
    }
  }
  log_.event(LogCategory::kCache, "miss", {{"digest", *digest}, {"arch", key.arch}});
  return std::nullopt;
}

std::optional<Artifact> ArtifactStore::find_in(const CacheLayer& layer, const ArtifactKey& key,
                                               const std::string& digest) {
  const ArtifactFiles files(layer.path(), key.arch, digest);
  Result<LoadedArtifact> loaded = layer.find_artifact(key.arch, digest);
  if (!loaded.ok()) {
    if (loaded.status().code() != Code::kNotFound)
      warn_once(files.metadata.native(), "bad_entry", files.metadata.native(), loaded.status().message());
    return std::nullopt;
  }
  {
    const std::lock_guard lock(state_->mutex);
    // It would come back into the directory that it was removed from, in the way of the one that replaces it.
    if (layer.remote() && state_->dropped.contains({digest, loaded->metadata.sha256})) return std::nullopt;
    state_->in_use.insert(digest);
  }
  if (layer.writable()) touch(files.metadata);
  if (layer.remote()) keep(loaded->metadata, digest, loaded->cubin);
  return Artifact{std::move(loaded->cubin), std::move(loaded->metadata.info), layer.path()};
}

bool ArtifactStore::put(const ArtifactKey& key, std::string_view cubin, const ArtifactInfo& info) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) {
    log_.event(LogCategory::kCache, "not_stored", {{"reason", digest.status().message()}});
    return false;
  }
  if (!is_cubin(cubin)) {
    log_.event(LogCategory::kCache, "not_stored", {{"digest", *digest}, {"reason", "the cubin is no ELF image"}});
    return false;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->in_use.insert(*digest);
  }
  // Somebody else was faster: both entries would do, and not writing keeps its two files together.
  if (!directories_.user.empty() && load_artifact(ArtifactFiles(directories_.user, key.arch, *digest), *digest).ok())
    return true;
  const ArtifactMetadata metadata{key, info, cubin.size(), sha256_hex(cubin)};
  for (const CacheLayerPtr& layer : layers_) layer->offer(metadata, *digest, cubin);
  return keep(metadata, *digest, cubin);
}

bool ArtifactStore::keep(const ArtifactMetadata& metadata, const std::string& digest, std::string_view cubin) {
  if (directories_.user.empty()) return false;
  const ArtifactFiles files(directories_.user, metadata.key.arch, digest);
  if (const Status status = save_artifact(files, metadata, cubin); !status.ok()) {
    warn_once("write " + directories_.user, "directory_not_writable", directories_.user, status.message());
    return false;
  }
  log_.event(LogCategory::kCache, "stored", {{"digest", digest}, {"bytes", cubin.size()}});
  prune_sometimes(cubin.size());
  return true;
}

void ArtifactStore::annotate(const ArtifactKey& key, const std::vector<ArtifactNote>& notes) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok() || directories_.user.empty()) return;
  const ArtifactFiles files(directories_.user, key.arch, *digest);
  for (const ArtifactNote& note : notes) {
    const fs::path path = files.note(note.extension);
    if (const Status status = write_file_atomically(path, note.text); !status.ok()) {
      warn_once("write " + directories_.user, "directory_not_writable", directories_.user, status.message());
      return;
    }
    log_.event(LogCategory::kCache, "dumped", {{"path", path.native()}, {"bytes", note.text.size()}});
  }
}

void ArtifactStore::drop(const ArtifactKey& key, std::string_view cubin) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->dropped.insert({*digest, sha256_hex(cubin)});
  }
  if (directories_.user.empty()) return;
  const ArtifactFiles files(directories_.user, key.arch, *digest);
  // Another process may have replaced it already.
  const Result<LoadedArtifact> stored = load_artifact(files, *digest);
  if (!stored.ok() || stored->cubin != cubin) return;
  if (const Status status = remove_artifact(files); !status.ok()) {
    warn_once("remove " + directories_.user, "not_removed", directories_.user, status.message());
    return;
  }
  log_.event(LogCategory::kCache, "dropped", {{"digest", *digest}, {"directory", directories_.user}});
}

void ArtifactStore::prune_sometimes(uint64_t written) {
  if (max_bytes_ == 0) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->written += written;
    if (state_->pruned && state_->written < max_bytes_ / kPruneFraction) return;
    state_->pruned = true;
    state_->written = 0;
  }
  prune({.max_bytes = max_bytes_, .nvrtc = {}});
}

}  // namespace hstujit
