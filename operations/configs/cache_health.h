// Whether cache directories can do their work: there, writable, with room, and what lies in them whole.
#pragma once

#include <sys/statfs.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/store/cache_layer.h"

namespace hstujit {

enum class Severity {
  kError,    // keeps kernels from running
  kWarning,  // they run, but not as somebody seems to expect
};
std::string_view to_string(Severity severity);  // "error" "warning"

// Advice about a cache, a folder or a file that is not trusted (says_distrust).
inline constexpr const char* kTrustAdvice =
    "where all who can write it may run code as this user, as in a team, set HSTUJIT_TRUST_CACHE=1 "
    "(docs/deployment.md); else take it and the folders above it out of others' hands with chown and chmod o-w, or "
    "name another one";

struct Finding {
  Severity severity = Severity::kWarning;
  std::string about;       // "driver" "nvrtc" "cache" ..., or the name of a variable
  std::string problem;     // a sentence
  std::string what_to_do;  // a sentence

  bool operator==(const Finding&) const = default;
};

// Less room than this is too little to start a job with: some hundred kernels.
inline constexpr uint64_t kMinFreeBytes = uint64_t{64} << 20;
// Clocks of machines that share a directory may differ by this much before anything goes wrong.
inline constexpr std::chrono::minutes kClockTolerance{5};

// State of a path in the file system. A directory that does not exist yet is made by the first write, below the nearest
// one that does: that one is looked at.
struct PathHealth {
  bool exists = false;
  std::string nearest;        // the path, or the one above it that is there
  bool is_directory = false;  // `nearest`; a link that leads nowhere is none
  bool writable = false;
  std::optional<uint64_t> free_bytes;  // for this user; none when the system does not say
  std::string network;                 // "nfs", "lustre", ... where it is a file system of other machines
  bool group_writable = false;         // the path, where it exists: by everybody in its group
};
PathHealth path_health(const std::string& path);

// The name of a file system that several machines may share, from statfs's f_type; empty for any other.
std::string network_file_system(decltype(statfs::f_type) type);

// Findings about the directory that is written; `health` describes its path.
std::vector<Finding> user_directory_findings(const std::string& path, const PathHealth& health);

// Files of a layer that no look-up uses: how many, and the first of them, of damaged ones and of those that are not
// trusted. Reads all of it. A write in progress is none.
std::vector<Finding> entry_findings(const CacheLayer& layer);

// Folders of the directory that this user cannot write, so that kernels whose place is there are not kept.
std::vector<Finding> folder_findings(const CacheTree& tree);

// Files of the directory that were written in the future, as another machine's clock says.
std::vector<Finding> clock_findings(const CacheTree& tree);

}  // namespace hstujit
