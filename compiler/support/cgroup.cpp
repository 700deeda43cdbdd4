#include "compiler/support/cgroup.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/files.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxBytes = size_t{1} << 16;

// The number that a limit's file begins with; nothing for "max" and for a file that is not there.
std::optional<uint64_t> number_in(const fs::path& path) {
  const Result<std::string> text = read_file(path, kMaxBytes);
  if (!text.ok()) return std::nullopt;
  uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [last, error] = std::from_chars(text->data(), end, number);
  return error == std::errc() && last + 1 >= end ? std::optional(number) : std::nullopt;
}

// The smallest limit of a group and of those around it, up to the root of the mount.
void lower_to(std::optional<uint64_t>& limit, const fs::path& root, std::string_view group, const char* file) {
  constexpr uint64_t kNone = uint64_t{1} << 60;  // version 1 says the largest multiple of a page
  fs::path path = fs::path(group).relative_path();
  for (;;) {
    if (const auto here = number_in(root / path / file); here && *here < kNone)
      limit = std::min(*here, limit.value_or(kNone));
    if (path.empty()) return;
    path = path.parent_path();
  }
}

}  // namespace

// A line is ID:CONTROLLERS:GROUP, without an ID and controllers for version 2. In a container the group may be one of
// the host's, which is not mounted: then the root of the mount is the container's own.
std::optional<uint64_t> cgroup_memory_limit(const fs::path& proc, const fs::path& cgroups) {
  std::optional<uint64_t> limit;
  const Result<std::string> groups = read_file(proc / "self" / "cgroup", kMaxBytes);
  if (!groups.ok()) return limit;
  for (const std::string& line : split(*groups, '\n')) {
    const size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view text = line, controllers = text.substr(first + 1, second - first - 1);
    const std::string_view group = text.substr(second + 1);
    const std::vector<std::string> names = split(controllers, ',');
    if (controllers.empty()) lower_to(limit, cgroups, group, "memory.max");
    if (std::find(names.begin(), names.end(), "memory") != names.end())
      lower_to(limit, cgroups / "memory", group, "memory.limit_in_bytes");
  }
  return limit;
}

}  // namespace hstujit
