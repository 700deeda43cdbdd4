// Choices that were made once and are then only looked up: HSTUJIT_FROZEN names a file of them.
//
// A process with such a file times nothing and asks neither tuning records nor the cost model, so all processes with
// the same file launch the same kernels, whatever their caches hold. The file is JSON: "format", "choices" in the order
// of their keys, each with the fields of the tuning key, for people, its digest, the config and "generator" (the digest
// of what decides its kernel: to a library that has another one the config is another kernel); "checksum", the SHA-256
// of all of that, is what processes compare.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/records/tuning_record.h"
#include "compiler/plan/kernel_config.h"
#include "compiler/support/json.h"
#include "runtime/engine/nearest_entry.h"

namespace hstujit {

struct FrozenChoice {
  TuningKey key;
  KernelConfig config;
};

// The text of a file; two choices of one key must be equal. kInvalidArgument when they are not.
Result<std::string> format_choices(const std::vector<FrozenChoice>& choices);

class FrozenChoices {
 public:
  // kInvalidConfig with what is wrong: no JSON, another format, a damaged file, a choice of another generator, a key
  // that is not the digest of the fields beside it.
  static Result<FrozenChoices> parse(std::string_view text, const std::string& origin);

  // Null when the file has none for the key.
  const KernelConfig* find(const TuningKey& key) const;

  // Finds the choice of an operator that differs least from one of these keys of it; none when there is none.
  std::optional<NearestEntry> nearest(const std::vector<TuningKey>& keys) const;

  const std::string& origin() const { return origin_; }
  const std::string& checksum() const { return checksum_; }
  size_t size() const { return configs_.size(); }

 private:
  std::string origin_;
  std::string checksum_;
  std::map<std::string, KernelConfig, std::less<>> configs_;  // by digest of the key
  std::vector<TuningKey> keys_;                               // of the file, which tell people of a miss what there is
  // The same as the first miss reads it.
  struct Rows {
    std::once_flag once;
    std::optional<KnownKeys> keys;
  };
  std::shared_ptr<Rows> read_ = std::make_shared<Rows>();
};

}  // namespace hstujit
