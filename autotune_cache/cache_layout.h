// Where things lie in a cache directory, and the directories of a process: one to write, others only to read.
//
//     <root>/v1/<arch>/<ab>/<digest>.cubin     compiled code
//     <root>/v1/<arch>/<ab>/<digest>.json      its metadata, written after it
//     <root>/v1/tuning/<ab>/<digest>.json      a tuning record
// <ab> is the digest's first two digits. "v1" changes when the layout does; an older library then sees nothing of it.
// docs/cache-format.md has the guarantees.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/env.h"
#include "compiler/support/log.h"

namespace hstujit {

// An interrupted write is given this long before its leftovers count as abandoned.
inline constexpr std::chrono::hours kLeftoverAge{1};

struct CacheDirectories {
  std::string user;                    // read and written; empty: nothing is kept beyond this process
  std::vector<std::string> read_only;  // looked at after `user`, in order

  // HSTUJIT_CACHE_DIR and what stands in for it, then HSTUJIT_CACHE_PATH. No usable user directory is logged, no error.
  static CacheDirectories from_environment(const Environment& environment, const Log& log);

  // All of them in order of lookup.
  std::vector<std::string> in_order() const;
};

std::filesystem::path version_folder(const std::string& root);
std::filesystem::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest);
std::filesystem::path tuning_root(const std::string& root);
std::filesystem::path record_file(const std::string& root, std::string_view digest);

// Calls visit(path) for each regular file below `folder`, in no particular order. Folders and files that disappear or
// cannot be read meanwhile are left out: other processes write and prune at the same time.
void for_each_file(const std::filesystem::path& folder, const std::function<void(const std::filesystem::path&)>& visit);

// True when the file was last written more than `age` ago; false when it is gone.
bool is_older_than(const std::filesystem::path& path, std::chrono::seconds age);

// Removes what interrupted writers left anywhere below `root`, when old enough; returns how many files.
int64_t sweep_leftovers(const std::string& root, std::chrono::seconds age = kLeftoverAge);

}  // namespace hstujit
