// A cache that other machines share, over HTTP as Bazel's remote caches and WebDAV servers speak it. Looked at after
// every directory.
//
//     <url>/cas/<SHA-256 of the bytes>   a cubin
//     <url>/ac/<digest>                  the metadata of a kernel, or a tuning record: the texts of a cache directory
// A cubin is sent before its metadata: metadata present means a complete entry. What comes back is checked by the code
// that checks a directory's files, so a remote can give a good entry or none; docs/cache-format.md has the rest.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "autotune_cache/remote/remote_connection.h"
#include "autotune_cache/remote/upload_queue.h"
#include "autotune_cache/store/cache_layer.h"
#include "compiler/support/env.h"
#include "compiler/support/log.h"

namespace hstujit {

class RemoteLayer final : public CacheLayer {
 public:
  RemoteLayer(RemoteUrl url, const RemoteOptions& options, const Log& log);

  bool writable() const override { return false; }
  bool remote() const override { return true; }
  // Asks it.
  Status health() const override;

  // kNotFound for everything that is no good entry, whatever the reason; a reason other than absence is logged here.
  // kOutOfMemory where there is no memory for what came.
  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const override;
  Result<TuningRecord> find_record(std::string_view digest) const override;
  // None is sent: machines that share kernels and records choose by these.
  Result<ChoiceRecord> find_choice(std::string_view /*digest*/) const override {
    return Status(Code::kNotFound, "a remote cache has no choices");
  }

  // Sent in the background, in time or not at all.
  void offer(const ArtifactMetadata& metadata, const std::string& digest, std::string_view cubin) const override;
  void offer(const TuningRecord& record) const override;

 private:
  struct State;
  // Its parent's threads do not exist in it, and the locks that they held at the fork stay locked: nothing is found in
  // such a process, and nothing is offered.
  bool in_forked_child() const;

  std::shared_ptr<State> state_;  // shared with the uploads
  const int owner_;               // the process that made this
  mutable UploadQueue uploads_;
};

// The layer of HSTUJIT_REMOTE_CACHE; null when it is not set. kInvalidArgument when it or HSTUJIT_REMOTE_UPLOAD has a
// value that is not allowed.
Result<CacheLayerPtr> open_remote_layer(const Environment& environment, const Log& log);

}  // namespace hstujit
