// On a miss: the entry of the caches whose key is nearest, and which of its fields differ. It tells "another build of
// the library" from "another length" at a glance.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune_cache/store/cache_listing.h"
#include "compiler/spec/json_text.h"

namespace hstujit {

// One field of a key: "generator", "direction", "spec.<field>", "config.<field>", "options", "sm_count", ... A member
// that one side lacks is null there.
struct KeyDifference {
  std::string field;
  Json wanted;
  Json found;
};

struct NearestEntry {
  std::string digest;
  std::string directory;  // its layer
  std::vector<KeyDifference> differences;

  // "differs in generator (3f0c12ab34cd, not 77d1…) and config.block_n (64, not 128)"
  std::string sentence() const;
  // {"digest", "directory", "differs": [{"field", "found", "wanted"}], "sentence"}
  Json to_json() const;
};

// Existing entries, with which misses are compared. The fields of all keys are read once, so that ten thousand misses
// among ten thousand keys take seconds.
class KnownKeys {
 public:
  // An entry is read from its layer before it is named: one that is damaged is none. Without layers none is read.
  explicit KnownKeys(const std::vector<StoredArtifact>& entries, CacheLayers layers = {});
  explicit KnownKeys(const std::vector<StoredRecord>& entries);
  // Keys of any arch, which is a field that may differ. Without digests and directories.
  explicit KnownKeys(const std::vector<TuningKey>& keys);

  // Finds the entry of the key's operator and arch with the fewest differing fields. Of several: that of which least
  // beside the generator differs, then that of the earlier layer. The entry of the key itself, which is there only when
  // it is damaged, is none. Configs are compared with all their fields, defaults too.
  std::optional<NearestEntry> nearest(const ArtifactKey& key);
  std::optional<NearestEntry> nearest(const TuningKey& key);

 private:
  // "spec.heads" and its value, and so on.
  using Fields = std::vector<std::pair<std::string, Json>>;
  struct Known {
    Fields fields;
    std::string digest;
    std::string directory;
    bool good = false;  // it was read
  };
  // Entries that may be near, of an operator and, but for keys of any arch, an arch.
  using Group = std::pair<std::string, std::string>;

  Group group_of(const TuningKey& key) const;
  std::optional<NearestEntry> nearest(const Group& group, const Fields& wanted);
  // Whether a look-up gives it; `arch` is that of its group.
  bool is_good(Known& entry, const std::string& arch) const;

  bool any_arch_ = false;
  CacheLayers layers_;  // of artifacts, which are listed without reading cubins
  std::map<Group, std::vector<Known>> known_;
};

}  // namespace hstujit
