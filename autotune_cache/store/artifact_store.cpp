#include "autotune_cache/store/artifact_store.h"

#include <utility>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/files/cubin_header.h"
#include "autotune_cache/store/artifact_state.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/memory.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// A hit refreshes the entry's time at most this often, so that a busy cache is not rewritten all the time.
constexpr std::chrono::hours kTouchInterval{1};
// A prune scans the directory, so it follows only after this part of the bound has been written.
constexpr uint64_t kPruneFraction = 16;

// A file that this process cannot write keeps its time.
void touch(const CacheTree& tree, const fs::path& name) {
  if (const auto folder = tree.open(name.parent_path()); folder.ok()) folder->touch(name.filename());
}

}  // namespace

ArtifactStore::ArtifactStore(CacheLayers layers, Log log, uint64_t max_bytes)
    : layers_(std::move(layers)),
      directories_(directories_of(layers_)),
      user_(writable_tree(layers_)),
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
  Result<LoadedArtifact> loaded = within_memory("the entry", [&] { return layer.find_artifact(key.arch, digest); });
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
  if (layer.writable() && layer.tree() != nullptr && is_older_than(loaded->last_used, kTouchInterval))
    touch(*layer.tree(), ArtifactFiles(kNoRoot, key.arch, digest).metadata);
  if (layer.remote()) keep(loaded->metadata, digest, loaded->cubin);
  return Artifact{std::move(loaded->cubin), std::move(loaded->metadata.info), layer.path()};
}

std::optional<Artifact> ArtifactStore::peek(const ArtifactKey& key) const {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) return std::nullopt;
  for (const CacheLayerPtr& layer : layers_) {
    Result<LoadedArtifact> loaded = layer->find_artifact(key.arch, *digest);
    if (loaded.ok()) return Artifact{std::move(loaded->cubin), std::move(loaded->metadata.info), layer->path()};
  }
  return std::nullopt;
}

bool ArtifactStore::put(const ArtifactKey& key, std::string_view cubin, const ArtifactInfo& info) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) {
    log_.event(LogCategory::kCache, "not_stored", {{"reason", digest.status().message()}});
    return false;
  }
  if (const Status status = check_cubin_arch(cubin, key.arch); !status.ok()) {
    log_.event(LogCategory::kCache, "not_stored", {{"digest", *digest}, {"reason", status.message()}});
    state_->not_kept.add(*digest, status.message());
    return false;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->in_use.insert(*digest);
  }
  // Somebody else was faster: both entries would do, and not writing keeps its two files together.
  if (user_ != nullptr) {
    Status stored = load_artifact(*user_, key.arch, *digest).status();
    // One that cannot be read for the moment is as good as what can be seen of it.
    if (is_system_failure(stored)) stored = see_artifact(*user_, key.arch, *digest).status();
    if (stored.ok()) return true;
    if (is_system_failure(stored)) {
      warn_once("write " + user_->root(), "directory_not_writable", user_->root(), stored.message());
      state_->not_kept.add(*digest, stored.message());
      return false;
    }
  }
  const ArtifactMetadata metadata{key, info, cubin.size(), sha256_hex(cubin)};
  for (const CacheLayerPtr& layer : layers_) layer->offer(metadata, *digest, cubin);
  return keep(metadata, *digest, cubin);
}

NotKept::Summary ArtifactStore::not_kept() const { return state_->not_kept.summary(); }

std::string ArtifactStore::why_not_kept(const std::string& digest) const { return state_->not_kept.reason(digest); }

bool ArtifactStore::keep(const ArtifactMetadata& metadata, const std::string& digest, std::string_view cubin) {
  if (user_ == nullptr) {
    state_->not_kept.add(digest, kNoUserDirectory);
    return false;
  }
  const ArtifactFiles files(kNoRoot, metadata.key.arch, digest);
  const Status status = user_->change(
      files.folder(), [&](const Folder& folder) { return save_artifact(folder, files, metadata, cubin); });
  if (!status.ok()) {
    state_->not_kept.add(digest, status.message());
    return false;
  }
  state_->not_kept.remove(digest);
  log_.event(LogCategory::kCache, "stored", {{"digest", digest}, {"bytes", cubin.size()}});
  prune_sometimes(cubin.size());
  return true;
}

void ArtifactStore::annotate(const ArtifactKey& key, const std::vector<ArtifactNote>& notes) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok() || user_ == nullptr || notes.empty()) return;
  const ArtifactFiles files(kNoRoot, key.arch, *digest);
  for (const ArtifactNote& note : notes) {
    const fs::path name = files.note(note.extension);
    const Status status =
        user_->change(files.folder(), [&](const Folder& folder) { return folder.write(name.filename(), note.text); });
    if (!status.ok()) return;
    log_.event(LogCategory::kCache, "dumped",
               {{"path", (fs::path(user_->root()) / name).native()}, {"bytes", note.text.size()}});
  }
}

void ArtifactStore::drop(const ArtifactKey& key, std::string_view cubin) {
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->dropped.insert({*digest, sha256_hex(cubin)});
  }
  if (user_ == nullptr) return;
  // Another process may have replaced it already.
  const Result<LoadedArtifact> stored = load_artifact(*user_, key.arch, *digest);
  if (!stored.ok() || stored->cubin != cubin) return;
  if (const Status status = remove_artifact(*user_, key.arch, *digest); !status.ok()) {
    warn_once("remove " + user_->root(), "not_removed", user_->root(), status.message());
    return;
  }
  log_.event(LogCategory::kCache, "dropped", {{"digest", *digest}, {"directory", user_->root()}});
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
