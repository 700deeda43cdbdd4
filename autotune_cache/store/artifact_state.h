// The memory of an ArtifactStore within its process.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "autotune_cache/store/artifact_store.h"

namespace hstujit {

struct ArtifactStore::State {
  std::mutex mutex;                                       // held for a look into the sets only
  std::set<std::string> in_use;                           // digests that this store found or put
  std::set<std::pair<std::string, std::string>> dropped;  // digest, and SHA-256 of the cubin
  std::set<std::string> warned;                           // paths and problems that were logged already
  NotKept not_kept;
  uint64_t written = 0;  // bytes put since the last prune
  bool pruned = false;
};

}  // namespace hstujit
