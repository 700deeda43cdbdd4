// The database of tuning records, one file per key, and of the choices that look-ups have made: in the same layers as
// the cubins, but apart from them.
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

#include "autotune_cache/records/tuning_record.h"
#include "autotune_cache/store/cache_listing.h"
#include "autotune_cache/store/not_kept.h"
#include "compiler/support/log.h"
#include "compiler/support/recent_map.h"

namespace hstujit {

// Whether a look-up keeps in the user directory what a remote layer has given.
enum class Keep { kFound, kNothing };

class TuningDatabase {
 public:
  // Choices of this process that memory has. One that it forgets is looked up in the directories again.
  static constexpr size_t kMostNoted = 1024;

  // The records that come with the library are one more read-only layer, the last.
  TuningDatabase(CacheLayers layers, Log log);
  TuningDatabase(const CacheDirectories& directories, const Log& log);

  // The record of the first layer that has a good one. A remote layer's is kept in the user directory.
  std::optional<TuningRecord> find(const TuningKey& key);
  // The same, of those that `usable` says true of: a record that its caller cannot use hides none of a later layer.
  using UsableRecord = std::function<bool(const TuningRecord&)>;
  std::optional<TuningRecord> find(const TuningKey& key, const UsableRecord& usable, Keep keep = Keep::kFound);

  // Finds what decides the key: of the first layer that has anything to say, an exported choice, or else the record. A
  // choice that was itself a guess comes after the record. One of both is there.
  struct Decision {
    std::optional<TuningRecord> record;
    std::optional<ChoiceRecord> choice;
  };
  using UsableChoice = std::function<bool(const ChoiceRecord&)>;
  std::optional<Decision> decide(const TuningKey& key, std::string_view generator, const UsableRecord& usable_record,
                                 const UsableChoice& usable_choice, Keep keep = Keep::kFound);

  // The choice that was noted for the key, by this process or in the first layer that has one.
  std::optional<ChoiceRecord> noted_choice(const TuningKey& key, std::string_view generator);
  // Notes what a look-up of this machine has chosen, for its next look-up and for a bundle: in memory, and in the user
  // directory where no layer of this machine says the same already. An exported choice of the user directory stays.
  void note_choice(const ChoiceRecord& choice);
  // Puts a choice into the user directory, whatever that has.
  void keep_choice(const ChoiceRecord& choice);
  // Forgets that of the user directory; `noted_only` leaves an exported one.
  void drop_choice(const TuningKey& key, std::string_view generator, bool noted_only = false);

  // Merges `record` into what find gives and keeps the result in the user directory. Of several processes that add
  // to the same key at once, each merges what it has displaced and looks again, so that nobody's timings are lost.
  // Where the system fails to read what is there, for want of memory or of open files, nothing is kept: that stays.
  // The other layers are offered the result.
  // Returns the merged record, stored or not; kInvalidArgument when the record itself is wrong.
  Result<TuningRecord> add(const TuningRecord& record);

  // The records that add could not keep until now.
  NotKept::Summary not_kept() const { return not_kept_.summary(); }
  // Why the last record or choice of that digest was not kept; empty where it was.
  std::string why_not_kept(const std::string& digest) const { return not_kept_.reason(digest); }

  // All readable records, by layer, then digest; a key may be in several layers.
  std::vector<StoredRecord> list() const;

  const CacheLayers& layers() const { return layers_; }

 private:
  struct Found {
    TuningRecord record;
    const CacheLayer* layer = nullptr;
  };
  // `failure`, unless it is null, is that of the system (is_system_failure) to read the directory that is written.
  std::optional<Found> look_up(const TuningKey& key, const UsableRecord& usable, bool ask_remote,
                               Status* failure = nullptr);
  // Looks up on this machine, before something is put in its place: a failure that passes is none.
  std::optional<Found> look_up_here(const TuningKey& key, Status* failure);
  TuningRecord kept(Found found, Keep keep);
  std::optional<ChoiceRecord> find_choice_in(const CacheLayer& layer, const std::string& digest,
                                             Status* failure = nullptr);
  Result<TuningRecord> merge_and_store(const TuningRecord& record);
  std::optional<TuningRecord> find_in(const CacheLayer& layer, const std::string& digest, Status* failure = nullptr);
  // The record that the new one has displaced, if there was a good one.
  Result<std::optional<TuningRecord>> store(const std::string& digest, const std::string& text);
  void warn_once(const std::string& path, std::string_view event, std::string_view reason);

  CacheLayers layers_;
  const CacheTree* user_;  // what is written, of the first layer; null: nothing
  Log log_;
  std::mutex mutex_;  // held for a look into what follows only
  NotKept not_kept_;
  std::set<std::string> warned_;                            // what was logged already: event and path
  RecentMap<std::string, ChoiceRecord> noted_{kMostNoted};  // by digest: what this process has chosen
};

}  // namespace hstujit
