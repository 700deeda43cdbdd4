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

// The end of every sentence here.
constexpr std::string_view kAllTheSame = "or set HSTUJIT_TRUST_CACHE=1, which uses it all the same";

// Why something else may be put into this folder by anybody; empty when not.
std::string distrust_of_folder(const fs::path& folder) {
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) == 0 || (info.st_mode & S_ISVTX) != 0) return {};
  return fmt::format(
      "anybody may put another one in its place, since everybody may write the folder {} (mode {:o}); take that away "
      "with chmod -R o-w, {}",
      quote(folder.native()), info.st_mode & 07777, kAllTheSame);
}

}  // namespace

std::string distrust(const struct stat& info) {
  const uid_t user = ::geteuid();
  if (info.st_uid != 0 && info.st_uid != user) {
    return fmt::format(
        "it belongs to the user {}, who is neither root nor the user {} of this process; give it to one of them with "
        "chown, {}",
        info.st_uid, user, kAllTheSame);
  }
  if ((info.st_mode & S_IWOTH) == 0) return {};
  return fmt::format("anybody may write it (mode {:o}); take that away with chmod -R o-w, {}", info.st_mode & 07777,
                     kAllTheSame);
}

std::string distrust_of_place(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as many as the system follows
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path reached = absolute.root_path();
  // Parts that are still to be walked, the next one last.
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
    if (::lstat(next.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) {
      reached = next;
      continue;
    }
    if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
      return fmt::format("the link {} belongs to the user {}; name the path without it, {}", quote(next.native()),
                         info.st_uid, kAllTheSame);
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMaxLinks) return {};  // nobody can open it
    if (target.is_absolute()) reached = target.root_path();
    walk_next(target);
  }
  return {};
}

bool says_distrust(std::string_view sentence) { return sentence.ends_with(kAllTheSame); }

std::string_view without_remedy(std::string_view sentence) {
  return says_distrust(sentence) ? sentence.substr(0, sentence.rfind("; ")) : sentence;  // no remedy has another
}

}  // namespace hstujit
