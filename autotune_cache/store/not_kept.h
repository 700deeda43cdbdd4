// Entries that a store could not write into the user directory, so that whoever is there to fill a cache can say so.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace hstujit {

// Without a directory to write into.
inline constexpr char kNoUserDirectory[] =
    "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; set HSTUJIT_CACHE_DIR";

// Thread-safe.
class NotKept {
 public:
  struct Summary {
    int64_t entries = 0;
    std::string reason;  // of one of them; empty without any
  };

  void add(const std::string& digest, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    reasons_.insert_or_assign(digest, reason);
  }
  // A later attempt has kept it.
  void remove(const std::string& digest) {
    const std::lock_guard lock(mutex_);
    reasons_.erase(digest);
  }
  // The reason of the last attempt; empty where that has kept it.
  std::string reason(const std::string& digest) const {
    const std::lock_guard lock(mutex_);
    const auto found = reasons_.find(digest);
    return found == reasons_.end() ? std::string() : found->second;
  }
  Summary summary() const {
    const std::lock_guard lock(mutex_);
    return {static_cast<int64_t>(reasons_.size()), reasons_.empty() ? std::string() : reasons_.begin()->second};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> reasons_;  // by digest
};

}  // namespace hstujit
