// The database of tuning records: one file per key, in the same layers as the cubins, but apart from them.
//
// The same promises as ArtifactStore: trouble with files is a logged miss or a logged line, and no lock is taken.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/cache_layer.h"
#include "autotune_cache/tuning_record.h"
#include "compiler/support/log.h"

namespace hstujit {

class TuningDatabase {
 public:
  // The records that come with the library are one more read-only layer, the last.
  TuningDatabase(CacheLayers layers, Log log);
  TuningDatabase(const CacheDirectories& directories, const Log& log);

  // The record of the first layer that has a good one. A remote layer's is kept in the user directory.
  std::optional<TuningRecord> find(const TuningKey& key);
  // The same, of those that `usable` says true of: a record that its caller cannot use hides none of a later layer.
  std::optional<TuningRecord> find(const TuningKey& key, const std::function<bool(const TuningRecord&)>& usable);

  // Merges `record` into what find gives and keeps the result in the user directory. Of several processes that add
  // to the same key at once, each merges what it has displaced and looks again, so that nobody's timings are lost.
  // The other layers are offered the result.
  // Returns the merged record, stored or not; kInvalidArgument when the record itself is wrong.
  Result<TuningRecord> add(const TuningRecord& record);

  // All readable records, by layer, then digest; a key may be in several layers.
  std::vector<StoredRecord> list() const;

  const CacheLayers& layers() const { return layers_; }

 private:
  struct Found {
    TuningRecord record;
    const CacheLayer* layer = nullptr;
  };
  std::optional<Found> look_up(const TuningKey& key, const std::function<bool(const TuningRecord&)>& usable,
                               bool ask_remote);
  Result<TuningRecord> merge_and_store(const TuningRecord& record);
  std::optional<TuningRecord> find_in(const CacheLayer& layer, const std::string& digest);
  // The record that the new one has displaced, if there was a good one.
  static Result<std::optional<TuningRecord>> store(const Folder& folder, const std::string& digest,
                                                   const std::string& text);
  void warn_once(const std::string& path, std::string_view event, std::string_view reason);

  CacheLayers layers_;
  const CacheTree* user_;  // what is written, of the first layer; null: nothing
  Log log_;
  std::mutex mutex_;              // held for a look into the set only
  std::set<std::string> warned_;  // paths that were logged already
};

}  // namespace hstujit
