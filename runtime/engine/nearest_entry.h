// On a miss: the entry of the caches whose key is nearest, and which of its fields differ. It tells "another build of
// the library" from "another length" at a glance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune_cache/cache_layer.h"
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

// Of the entries with the key's operator and arch, that with the fewest differing fields. Of several: that of which
// least beside the generator differs, then that of the earlier layer. The entry of the key itself, which is there only
// when it is damaged, is none. Configs are compared with all their fields, defaults too.
std::optional<NearestEntry> nearest_entry(const ArtifactKey& key, const std::vector<StoredArtifact>& entries);
std::optional<NearestEntry> nearest_entry(const TuningKey& key, const std::vector<StoredRecord>& entries);
// Of keys with the operator and any arch, which is a field that may differ. Without a digest and a directory.
std::optional<NearestEntry> nearest_entry(const TuningKey& key, const std::vector<TuningKey>& entries);

}  // namespace hstujit
