#include "autotune_cache/cache_layout.h"

#include <algorithm>

#include "autotune_cache/cache_key.h"

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

void CacheDirectories::make_absolute() {
  const auto resolve = [](std::string& directory) {
    std::error_code error;
    const fs::path absolute = fs::absolute(directory, error);
    if (!directory.empty() && !error) directory = absolute;
  };
  resolve(user);
  for (std::string& directory : read_only) resolve(directory);
}

std::vector<std::string> CacheDirectories::in_order() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& directory) {
    std::error_code error;
    const bool known = std::any_of(all.begin(), all.end(), [&](const std::string& other) {
      return other == directory || fs::equivalent(other, directory, error);
    });
    if (!known) all.push_back(directory);
  };
  if (!user.empty()) add(user);
  for (const std::string& directory : read_only) add(directory);
  return all;
}

fs::path version_folder(const std::string& root) { return fs::path(root) / "v1"; }

bool is_of_layout(std::string_view name) {
  return is_arch_name(name) || name == tuning_root(kNoRoot).filename().native() ||
         name == choices_root(kNoRoot).filename().native();
}

fs::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest) {
  return version_folder(root) / arch / digest.substr(0, 2);
}

fs::path tuning_root(const std::string& root) { return version_folder(root) / "tuning"; }

fs::path record_file(const std::string& root, std::string_view digest) {
  return tuning_root(root) / digest.substr(0, 2) / (std::string(digest) + ".json");
}

fs::path choices_root(const std::string& root) { return version_folder(root) / "choices"; }

fs::path choice_file(const std::string& root, std::string_view digest) {
  return choices_root(root) / digest.substr(0, 2) / (std::string(digest) + ".json");
}

bool is_older_than(const FileTime& time, std::chrono::seconds age) { return time < file_time_in(-age); }

}  // namespace hstujit
