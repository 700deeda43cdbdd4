#include "autotune_cache/cache_layout.h"

#include <system_error>

#include "compiler/support/files.h"

namespace hstujit {

namespace fs = std::filesystem;

CacheDirectories CacheDirectories::from_environment(const Environment& environment, const Log& log) {
  CacheDirectories directories;
  Result<std::string> user = environment.cache_directory();
  if (user.ok()) {
    directories.user = *user;
  } else {
    log.event(LogCategory::kCache, "no_directory", {{"reason", user.status().message()}});
  }
  directories.read_only = environment.paths(Env::kCachePath);
  return directories;
}

std::vector<std::string> CacheDirectories::in_order() const {
  std::vector<std::string> all;
  if (!user.empty()) all.push_back(user);
  all.insert(all.end(), read_only.begin(), read_only.end());
  return all;
}

fs::path version_folder(const std::string& root) { return fs::path(root) / "v1"; }

fs::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest) {
  return version_folder(root) / arch / digest.substr(0, 2);
}

fs::path tuning_root(const std::string& root) { return version_folder(root) / "tuning"; }

fs::path record_file(const std::string& root, std::string_view digest) {
  return tuning_root(root) / digest.substr(0, 2) / (std::string(digest) + ".json");
}

void for_each_file(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    std::error_code gone;
    const fs::file_status status = entry->symlink_status(gone);
    if (fs::is_directory(status)) {
      for_each_file(entry->path(), visit);
    } else if (fs::is_regular_file(status)) {
      visit(entry->path());
    }
    entry.increment(error);
  }
}

bool is_older_than(const fs::path& path, std::chrono::seconds age) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written > age;
}

int64_t sweep_leftovers(const std::string& root, std::chrono::seconds age) {
  int64_t removed = 0;
  for_each_file(version_folder(root), [&](const fs::path& path) {
    std::error_code error;
    if (is_abandoned_temporary(path) && is_older_than(path, age) && fs::remove(path, error)) ++removed;
  });
  return removed;
}

}  // namespace hstujit
