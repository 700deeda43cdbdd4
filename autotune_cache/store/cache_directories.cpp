#include "autotune_cache/store/cache_directories.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

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

}  // namespace hstujit
