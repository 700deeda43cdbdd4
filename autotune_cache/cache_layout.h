// Where things lie in a cache directory, and the directories of a process: one to write, others only to read.
//
//     <root>/v1/<arch>/<ab>/<digest>.cubin     compiled code
//     <root>/v1/<arch>/<ab>/<digest>.json      its metadata, written after it
//     <root>/v1/tuning/<ab>/<digest>.json      a tuning record
//     <root>/v1/choices/<ab>/<digest>.json     which config a look-up chose
// <ab> is the digest's first two digits. "v1" changes when the layout does; an older library then sees nothing of it.
// docs/cache-format.md has the guarantees.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/bundle_decoder.h"
#include "compiler/support/env.h"
#include "compiler/support/folder.h"
#include "compiler/support/log.h"
#include "compiler/support/trust.h"

namespace hstujit {

// An interrupted write is given this long before its leftovers count as abandoned.
inline constexpr std::chrono::hours kLeftoverAge{1};

struct CacheDirectories {
  std::string user;                    // read and written; empty: nothing is kept beyond this process
  std::vector<std::string> read_only;  // looked at after `user`, in order
  Trust trust = Trust::kOwn;           // HSTUJIT_TRUST_CACHE: what others have written is used, too
  // Decompresses bundles among the files to read.
  BundleDecoder decode = bundle_decoder(Environment::of_values({}));

  // HSTUJIT_CACHE_DIR and what stands in for it, then HSTUJIT_CACHE_PATH. No usable user directory is logged, no error.
  static CacheDirectories from_environment(const Environment& environment, const Log& log);

  // All of them in order of lookup.
  std::vector<std::string> in_order() const;

  // The same from the folder that is current now: a process that goes to another one keeps its caches.
  void make_absolute();
};

// The root of relative names, such as those in a bundle.
inline constexpr const char* kNoRoot = "";

std::filesystem::path version_folder(const std::string& root);
// Whether a name is of what lies in a version's folder.
bool is_of_layout(std::string_view name);
std::filesystem::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest);
std::filesystem::path tuning_root(const std::string& root);
std::filesystem::path record_file(const std::string& root, std::string_view digest);
std::filesystem::path choices_root(const std::string& root);
std::filesystem::path choice_file(const std::string& root, std::string_view digest);

// True when `time` is more than `age` ago.
bool is_older_than(const FileTime& time, std::chrono::seconds age);

}  // namespace hstujit
