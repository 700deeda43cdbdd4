// Lists of what lies in the layers of a cache, and of what is wrong with it. Look-ups need neither, so these functions
// are not virtual ones of CacheLayer: a library that calls none of them links none of their code.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "autotune_cache/store/cache_layer.h"

namespace hstujit {

struct StoredArtifact {
  ArtifactMetadata metadata;
  std::string digest;
  std::string directory;  // path of its layer
  uint64_t bytes = 0;     // of both files
  int64_t last_used = 0;  // seconds since 1970, exact to an hour; 0 where nobody keeps it
};

struct StoredRecord {
  TuningRecord record;
  std::string digest;
  std::string directory;  // path of its layer
};

struct StoredChoice {
  ChoiceRecord choice;
  std::string digest;
  std::string directory;  // path of its layer
};

// Keeps a failure of the system in `failure`, unless that is null or holds one.
void keep_failure(const Status& status, Status* failure);

// Entries of the layer with readable metadata, by arch and digest; none of a remote layer, as HTTP lists none. Reads no
// cubin of a directory. `failure`, unless it is null or holds one already, is the first failure of the system that kept
// an entry out of the list.
std::vector<StoredArtifact> artifacts_of(const CacheLayer& layer, Status* failure = nullptr);
// Readable records and choices, by digest.
std::vector<StoredRecord> records_of(const CacheLayer& layer, Status* failure = nullptr);
std::vector<StoredChoice> choices_of(const CacheLayer& layer, Status* failure = nullptr);
// Reads everything. Anything that a look-up would not accept has a problem.
std::vector<VerifiedFile> verify_layer(const CacheLayer& layer);
// The folders that a look-up passes over with everything in them, or the root. Lists have nothing of them.
std::vector<VerifiedFile> folders_passed_over(const CacheLayer& layer);

// Items that `list`, one of these, gives of every layer, in the layers' order.
template <typename Item, typename... Failure>
std::vector<Item> gather(const CacheLayers& layers, std::vector<Item> (*list)(const CacheLayer&, Failure*...)) {
  std::vector<Item> all;
  for (const CacheLayerPtr& layer : layers) {
    std::vector<Item> items = list(*layer, static_cast<Failure*>(nullptr)...);
    all.insert(all.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  }
  return all;
}
// The same, or the first failure of the system that kept an entry out of it.
template <typename Item>
Result<std::vector<Item>> gather_whole(const CacheLayers& layers,
                                       std::vector<Item> (*list)(const CacheLayer&, Status* failure)) {
  std::vector<Item> all;
  Status failure;
  for (const CacheLayerPtr& layer : layers) {
    std::vector<Item> items = list(*layer, &failure);
    all.insert(all.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  }
  HSTUJIT_RETURN_IF_ERROR(failure);
  return all;
}

}  // namespace hstujit
