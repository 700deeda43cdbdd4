#include "compiler/support/trust.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

std::string distrust_of_folders_above(const fs::path& path) {
  for (fs::path folder = path.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    struct stat info;
    if (::stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
      return fmt::format(
          "anybody may put another one in its place, since everybody may write the folder {} (mode {:o})",
          quote(folder.native()), info.st_mode & 07777);
    }
    if (folder == folder.root_path()) break;
  }
  return {};
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
  std::error_code error;
  if (std::string written = distrust_of_folders_above(fs::absolute(path, error)); !written.empty()) return written;
  return distrust_of_folders_above(fs::canonical(path, error));
}

}  // namespace hstujit
