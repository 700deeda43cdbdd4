// A store over a temporary directory, with its log kept for looking at.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/store/artifact_store.h"
#include "compiler/support/files.h"
#include "tests/autotune_cache/samples.h"

namespace hstujit {

// fork() for what is killed later on: throws where the system refuses a process, as killing process -1 kills them all.
inline pid_t fork_or_throw() {
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  return child;
}

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::create();
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    folder_.emplace(std::move(folder).value());
  }

  std::string path(const std::string& name) const { return (folder_->path() / name).native(); }
  CacheDirectories user_only() const { return {.user = path("user"), .read_only = {}}; }
  Log log() {
    return Log([this](LogCategory, const std::string& line) {
      const std::lock_guard lock(lines_mutex_);
      lines_.push_back(line);
    });
  }
  // How many logged lines have this event.
  int events(const std::string& name) const {
    const std::lock_guard lock(lines_mutex_);
    int count = 0;
    for (const std::string& line : lines_) count += line.find("," + name + ",") != std::string::npos;
    return count;
  }
  // The directory as a team shares it: whoever owns what is in it.
  CacheDirectories shared() const { return {.user = path("user"), .read_only = {}, .trust = Trust::kAll}; }
  // Calls visit(path) for each regular file below `folder`.
  template <typename Visit>
  static void for_each_file(const std::filesystem::path& folder, const Visit& visit) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      if (std::filesystem::is_regular_file(entry.symlink_status())) visit(entry.path());
    }
  }
  ArtifactFiles files_of(const ArtifactKey& key, const std::string& directory = "user") const {
    return ArtifactFiles(path(directory), key.arch, *artifact_digest(key));
  }
  // Runs `body` in a process that is no superuser's and owns none of the files here, or at least is no superuser's
  // where it cannot be another user's. The folder of the test is open to it.
  template <typename Body>
  bool as_another_user(const Body& body) {
    std::filesystem::permissions(folder_->path(), std::filesystem::perms(0755));
    const pid_t child = ::fork();
    if (child == 0) {
      constexpr unsigned kNobody = 65534;
      if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) {
        ::_exit(1);
      }
      ::_exit(body() ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
  // Runs `body` in a process that may open no further file.
  template <typename Body>
  static bool without_open_files(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit limit = {3, 3};
      ::_exit(::setrlimit(RLIMIT_NOFILE, &limit) == 0 && body() ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
  static void set_age(const std::filesystem::path& file, std::chrono::hours age) {
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
  }

  std::optional<TempDir> folder_;
  mutable std::mutex lines_mutex_;
  std::vector<std::string> lines_;
};

}  // namespace hstujit
