#include "operations/configs/cache_health.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/store/cache_listing.h"
#include "compiler/support/folder.h"
#include "compiler/support/text.h"
#include "compiler/support/trust.h"

namespace hstujit {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMemoryOnly = "kernels are compiled again in every process";

// Files that are passed over for one reason.
struct PassedOverFiles {
  size_t count = 0;
  VerifiedFile first;

  void add(const VerifiedFile& file) {
    if (count++ == 0) first = file;
  }
  // Reports `files` in the layer.
  void report(size_t files, const std::string& layer, std::string_view reason, const char* what_to_do,
              std::vector<Finding>* findings) const {
    if (count == 0) return;
    findings->push_back(
        {Severity::kWarning, "cache",
         fmt::format("{} of {} in {} {} not used{}; the first is {}: {}", count, counted(files, "file"), quote(layer),
                     count == 1 ? "is" : "are", reason, quote(first.path), without_remedy(first.problem)),
         what_to_do});
  }
};

// Calls visit for the folder and those in it, `levels` deep, but for those that do not count.
void walk_folders(const Folder& folder, int levels, const std::function<void(const Folder&)>& visit) {
  visit(folder);
  const auto names = folder.names();
  if (levels == 0 || !names.ok()) return;
  for (const std::string& name : *names) {
    if (const auto inner = folder.folder(name); inner.ok()) walk_folders(*inner, levels - 1, visit);
  }
}

}  // namespace

std::string_view to_string(Severity severity) { return severity == Severity::kError ? "error" : "warning"; }

std::string network_file_system(decltype(statfs::f_type) type) {
  // As statfs(2) and the file systems' own headers have them.
  switch (static_cast<uint32_t>(type)) {
    case 0x6969:
      return "nfs";
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42:
      return "smb";
    case 0x0BD00BD0:
      return "lustre";
    case 0x47504653:
      return "gpfs";
    case 0x00C36400:
      return "ceph";
    case 0x19830326:
      return "beegfs";
    case 0x5346414F:
      return "afs";
    case 0x73757245:
      return "coda";
    case 0xAAD7AAEA:
      return "panfs";
    case 0x01161970:
      return "gfs2";
    case 0x7461636F:
      return "ocfs2";
    case 0x01021997:
      return "9p";
    case 0x65735546:
      return "fuse";
    default:
      return "";
  }
}

// Whether a file system is /proc or /sys, where nobody makes directories, whatever their permissions say.
bool is_kernels_own(decltype(statfs::f_type) type) { return type == PROC_SUPER_MAGIC || type == SYSFS_MAGIC; }

PathHealth path_health(const std::string& path) {
  PathHealth health;
  std::error_code error;
  health.exists = fs::exists(path, error);
  fs::path nearest = path;
  while (nearest.has_relative_path() && !fs::exists(fs::symlink_status(nearest, error)))
    nearest = nearest.parent_path();
  if (nearest.empty()) nearest = ".";
  health.nearest = nearest.native();
  // A relative path leads nowhere where the process's folder was removed.
  const bool reached = nearest.is_absolute() || !fs::current_path(error).empty();
  health.is_directory = reached && fs::is_directory(nearest, error);
  health.writable = health.is_directory && access(nearest.c_str(), W_OK | X_OK) == 0;
  struct stat info;
  health.group_writable = health.exists && ::stat(path.c_str(), &info) == 0 && (info.st_mode & S_IWGRP) != 0;
  struct statvfs space;
  // One without blocks, such as /proc, says nothing of its room.
  if (::statvfs(nearest.c_str(), &space) == 0 && space.f_blocks > 0)
    health.free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  struct statfs system;
  if (::statfs(nearest.c_str(), &system) == 0) {
    health.network = network_file_system(system.f_type);
    if (!health.exists && is_kernels_own(system.f_type)) health.writable = false;
  }
  return health;
}

std::vector<Finding> user_directory_findings(const std::string& path, const PathHealth& health) {
  if (!health.is_directory) {
    return {{Severity::kWarning, "cache",
             fmt::format("the cache directory {} cannot be used: {} is no directory; {}", quote(path),
                         quote(health.nearest), kMemoryOnly),
             "remove the existing file, or name a directory by HSTUJIT_CACHE_DIR or --cache-dir"}};
  }
  if (!health.writable) {
    return {{Severity::kWarning, "cache",
             fmt::format("the cache directory {} cannot be {}; {}", quote(path), health.exists ? "written" : "created",
                         kMemoryOnly),
             "let this user write it, or name another one by HSTUJIT_CACHE_DIR; one that is only to be read belongs in "
             "HSTUJIT_CACHE_PATH"}};
  }
  if (health.free_bytes && *health.free_bytes < kMinFreeBytes) {
    return {{Severity::kWarning, "cache",
             fmt::format("the file system of the cache directory {} has {} MiB free, less than {}; {} once it is full",
                         quote(path), *health.free_bytes >> 20, kMinFreeBytes >> 20, kMemoryOnly),
             "free space: hstujit cache prune --max-bytes SIZE removes the least recently used kernels, and "
             "HSTUJIT_CACHE_MAX_BYTES bounds them from then on"}};
  }
  return {};
}

std::vector<Finding> entry_findings(const CacheLayer& layer) {
  size_t files = 0;
  PassedOverFiles damaged;
  PassedOverFiles distrusted;
  for (const VerifiedFile& file : verify_layer(layer)) {
    if (file.unread) {
      return {{Severity::kWarning, "cache",
               fmt::format("the files in {} cannot be checked: {}", quote(layer.path()), file.problem),
               "ask again when the system has memory and open files to give; ulimit -n is the limit of the latter"}};
    }
    if (is_abandoned_temporary(file.path)) continue;
    ++files;
    if (file.problem.empty()) continue;
    (says_distrust(file.problem) ? distrusted : damaged).add(file);
  }
  std::vector<Finding> findings;
  damaged.report(files, layer.path(), "",
                 "hstujit cache verify names all of them; what is damaged may be deleted, and is then compiled or "
                 "measured again",
                 &findings);
  distrusted.report(files, layer.path(), ", though nothing says that it is damaged", kTrustAdvice, &findings);
  return findings;
}

std::vector<Finding> folder_findings(const CacheTree& tree) {
  const auto version = tree.open(version_folder(kNoRoot));
  if (!version.ok()) return {};
  size_t folders = 0;
  std::string first;
  walk_folders(*version, 2, [&](const Folder& folder) {
    if (::faccessat(AT_FDCWD, folder.path().c_str(), W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES) return;
    if (folders++ == 0) first = folder.path().native();
  });
  if (folders == 0) return {};
  return {{Severity::kWarning, "cache",
           fmt::format("this user cannot write {} of the cache directory {}, such as {}: kernels and tuning results "
                       "whose place is there are not kept",
                       counted(folders, "folder"), quote(tree.root()), quote(first)),
           "let the group write them with chmod -R g+w, and set umask 002 for all who share the directory "
           "(docs/deployment.md)"}};
}

std::vector<Finding> clock_findings(const CacheTree& tree) {
  const FileTime latest = file_time_in(kClockTolerance);
  size_t files = 0;
  std::string first;
  tree.walk(version_folder(kNoRoot), 2, nullptr, [&](const CacheItem& item) {
    if (item.info.written > latest && files++ == 0) first = (fs::path(tree.root()) / item.name).native();
  });
  if (files == 0) return {};
  return {{Severity::kWarning, "cache",
           fmt::format("{} in {} {} from the future, such as {}: the clocks of this machine and of another that writes "
                       "the directory differ, so what was used last and what was left behind is misjudged",
                       counted(files, "file"), quote(tree.root()), files == 1 ? "is" : "are", quote(first)),
           "set the clocks of the machines that share the directory; then touch the files"}};
}

}  // namespace hstujit
