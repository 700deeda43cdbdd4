#include "autotune_cache/remote/remote_layer.h"

#include <unistd.h>

#include <utility>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/files/cache_key.h"
#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

constexpr size_t kMaxMisses = 65536;  // that are remembered
constexpr const char* kForked = "a forked child does without its parent's remote cache";

std::string entry_path(std::string_view digest) { return "/ac/" + std::string(digest); }
std::string bytes_path(std::string_view sha256) { return "/cas/" + std::string(sha256); }

}  // namespace

struct RemoteLayer::State {
  RemoteConnection connection;
  const Log log;
  std::mutex mutex;  // held for a look into the set only
  // Digests that the remote did not have, or had wrongly: it is not asked for them again.
  std::unordered_set<std::string> misses;

  State(RemoteUrl url, const RemoteOptions& options, const Log& to)
      : connection(std::move(url), options, to), log(to) {}

  bool is_known_miss(std::string_view digest) {
    const std::lock_guard lock(mutex);
    return misses.contains(std::string(digest));
  }
  void remember_miss(std::string_view digest) {
    const std::lock_guard lock(mutex);
    if (misses.size() >= kMaxMisses) misses.clear();
    misses.emplace(digest);
  }

  // Turns a failed request into the status of a look-up. An entry that this process has no memory for may be good; any
  // other failure is a miss.
  Status miss(std::string_view digest, const Status& status) {
    if (is_system_failure(status)) return status;
    if (status.code() == Code::kNotFound) remember_miss(digest);
    return Status(Code::kNotFound, "the remote cache has no good entry");
  }
  // Treats a bad entry as a missing one: kNotFound. Where it could not be looked at, the remote is not to blame.
  Status wrong(const RemoteConnection::Fetched& fetched, const std::string& path, const Status& status) {
    if (is_system_failure(status)) {
      connection.accept(fetched, path);
      return status;
    }
    connection.distrust(fetched, path, status.message());
    return Status(Code::kNotFound, status.message());
  }

  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) {
    const std::string path = entry_path(digest);
    const auto entry = connection.get(path, kMaxMetadataBytes);
    if (!entry.ok()) return entry.status();
    const Result<ArtifactMetadata> metadata = parse_metadata(entry->body, digest);
    if (!metadata.ok()) return wrong(*entry, path, metadata.status());
    if (!is_digest(metadata->sha256) || metadata->size > kMaxCubinBytes)
      return wrong(*entry, path, Status(Code::kIo, "its metadata names no cubin of an allowed size"));

    const std::string cubin_path = bytes_path(metadata->sha256);
    auto cubin = connection.get(cubin_path, metadata->size, nullptr, &*entry);
    if (!cubin.ok()) return cubin.status();
    Result<LoadedArtifact> loaded = check_artifact(entry->body, std::move(cubin->body), arch, digest);
    if (!loaded.ok()) return wrong(*cubin, cubin_path, loaded.status());
    connection.accept(*cubin, cubin_path);
    return loaded;
  }

  // kNotFound when the remote has none or no good one; another code when that is not known.
  Result<TuningRecord> find_record(std::string_view digest, const std::atomic<bool>* stop) {
    const std::string path = entry_path(digest);
    const auto entry = connection.get(path, kMaxRecordBytes, stop);
    if (!entry.ok()) return entry.status();
    Result<TuningRecord> record = parse_record(entry->body, digest);
    if (!record.ok()) return wrong(*entry, path, record.status());
    connection.accept(*entry, path);
    return record;
  }

  void upload_artifact(const std::string& digest, const std::string& sha256, const std::string& metadata,
                       const std::string& cubin, const std::atomic<bool>& stop) {
    if (!connection.put(bytes_path(sha256), cubin, &stop) || !connection.put(entry_path(digest), metadata, &stop))
      return;
    log.event(LogCategory::kCache, "uploaded", {{"digest", digest}, {"bytes", cubin.size()}});
  }

  // Keeps what another machine has timed, also where it cannot be read for the moment: then nothing is sent. Two that
  // send at once may lose one's timings: they are in its directory.
  void upload_record(const TuningRecord& record, const std::string& digest, const std::atomic<bool>& stop) {
    const auto there = find_record(digest, &stop);
    if (stop) return;  // what is there is unknown
    TuningRecord merged = record;
    if (!there.ok() && there.status().code() != Code::kNotFound) {
      log.event(LogCategory::kCache, "not_uploaded", {{"digest", digest}, {"reason", there.status().message()}});
      return;
    }
    if (there.ok()) {
      auto both = merge_records(*there, record);
      if (!both.ok() || *both == *there) return;
      merged = std::move(both).value();
    }
    const Result<std::string> text = format_record(merged);
    if (!text.ok() || !connection.put(entry_path(digest), *text, &stop)) return;
    log.event(LogCategory::kCache, "uploaded", {{"digest", digest}, {"bytes", text->size()}});
  }
};

RemoteLayer::RemoteLayer(RemoteUrl url, const RemoteOptions& options, const Log& log)
    : CacheLayer(url.base),
      state_(std::make_shared<State>(std::move(url), options, log)),
      owner_(::getpid()),
      uploads_(options.max_uploads, options.max_upload_bytes, options.last_wait, log) {}

bool RemoteLayer::in_forked_child() const { return ::getpid() != owner_; }

Status RemoteLayer::health() const {
  if (in_forked_child()) return Status(Code::kIo, kForked);
  return state_->connection.health();
}

Result<LoadedArtifact> RemoteLayer::find_artifact(std::string_view arch, std::string_view digest) const {
  if (in_forked_child()) return Status(Code::kNotFound, kForked);
  if (state_->is_known_miss(digest)) return Status(Code::kNotFound, "it was not in the remote cache before");
  Result<LoadedArtifact> found = state_->find_artifact(arch, digest);
  if (!found.ok()) return state_->miss(digest, found.status());
  return found;
}

Result<TuningRecord> RemoteLayer::find_record(std::string_view digest) const {
  if (in_forked_child()) return Status(Code::kNotFound, kForked);
  if (state_->is_known_miss(digest)) return Status(Code::kNotFound, "it was not in the remote cache before");
  Result<TuningRecord> found = state_->find_record(digest, nullptr);
  if (!found.ok()) return state_->miss(digest, found.status());
  return found;
}

void RemoteLayer::offer(const ArtifactMetadata& metadata, const std::string& digest, std::string_view cubin) const {
  if (in_forked_child() || !state_->connection.uploads()) return;
  Result<std::string> text = format_metadata(metadata);
  if (!text.ok()) return;
  const size_t bytes = text->size() + cubin.size();
  uploads_.add(digest, bytes,
               [state = state_, digest, sha256 = metadata.sha256, text = std::move(text).value(),
                bytes_of_cubin = std::string(cubin)](const std::atomic<bool>& stop) {
                 state->upload_artifact(digest, sha256, text, bytes_of_cubin, stop);
               });
}

void RemoteLayer::offer(const TuningRecord& record) const {
  if (in_forked_child() || !state_->connection.uploads()) return;
  const std::string digest = tuning_digest(record.key);
  const Result<std::string> text = format_record(record);
  if (!text.ok()) return;
  uploads_.add(digest, text->size(), [state = state_, digest, record](const std::atomic<bool>& stop) {
    state->upload_record(record, digest, stop);
  });
}

Result<CacheLayerPtr> open_remote_layer(const Environment& environment, const Log& log) {
  RemoteOptions options;
  HSTUJIT_ASSIGN_OR_RETURN(options.upload, environment.flag(Env::kRemoteUpload));
  if (!environment.is_set(Env::kRemoteCache)) return CacheLayerPtr();
  HSTUJIT_ASSIGN_OR_RETURN(RemoteUrl url, parse_remote_url(environment.text(Env::kRemoteCache)));
  return CacheLayerPtr(std::make_shared<RemoteLayer>(std::move(url), options, log));
}

}  // namespace hstujit
