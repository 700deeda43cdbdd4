#include "compiler/support/trust.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// Why something else may be put into this folder by anybody; empty when not.
std::string distrust_of_folder(const fs::path& folder) {
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) == 0 || (info.st_mode & S_ISVTX) != 0) return {};
  return fmt::format("anybody may put another one in its place, since everybody may write the folder {} (mode {:o})",
                     quote(folder.native()), info.st_mode & 07777);
}

}  // namespace

std::string distrust(const struct stat& info) {
  const uid_t user = ::geteuid();
  if (info.st_uid != 0 && info.st_uid != user) {
    return fmt::format("it belongs to the user {}, who is neither root nor the user {} of this process", info.st_uid,
                       user);
  }
  if ((info.st_mode & S_IWOTH) != 0) return fmt::format("anybody may write it (mode {:o})", info.st_mode & 07777);
  return {};
}

std::string distrust_of_place(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as many as the system follows
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path reached = absolute.root_path();
  // What is still to be walked, the next part last.
  std::vector<fs::path> rest;
  const auto walk_next = [&](const fs::path& parts) {
    const fs::path relative = parts.relative_path();
    const auto at = static_cast<std::ptrdiff_t>(rest.size());
    rest.insert(rest.end(), relative.begin(), relative.end());
    std::reverse(rest.begin() + at, rest.end());
  };
  walk_next(absolute);
  for (int links = 0; !rest.empty();) {
    const fs::path part = rest.back();
    rest.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      reached = reached.parent_path();
      continue;
    }
    if (std::string folder = distrust_of_folder(reached); !folder.empty()) return folder;
    struct stat info;
    const fs::path next = reached / part;
    if (::lstat(next.c_str(), &info) != 0) return {};
    if (!S_ISLNK(info.st_mode)) {
      reached = next;
      continue;
    }
    if (info.st_uid != 0 && info.st_uid != ::geteuid())
      return fmt::format("the link {} belongs to the user {}", quote(next.native()), info.st_uid);
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMaxLinks) return {};  // nobody can open it
    if (target.is_absolute()) reached = target.root_path();
    walk_next(target);
  }
  return {};
}

}  // namespace hstujit
