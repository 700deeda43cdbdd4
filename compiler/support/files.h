// Files by their paths: whole reads, atomic writes, folders, temporary folders. Failures name the path and the system's
// reason. compiler/support/folder.h is for places where others may have put anything.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// kNotFound when there is no such file, kIo for everything else.
Result<std::string> read_file(const std::filesystem::path& path);

// The same for a place where others may have put anything: kIo for what is no regular file. It waits for no pipe's
// writer, and reads no device that has no end.
Result<std::string> read_regular_file(const std::filesystem::path& path);

// To the end of an open file, which messages call `path`. The size is a hint: the file may grow while it is read, and
// files of /proc say 0.
Result<std::string> read_to_end(int descriptor, size_t size, const std::filesystem::path& path);

// All of the bytes to an open file; 0, or the number of the error that ended it.
int write_all(int descriptor, std::string_view bytes);

// Creates or replaces `path`, as Folder::write does. The folder must exist.
Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Adds `line` and a newline by one write to the end of `path`, which is created when missing.
Status append_line(const std::filesystem::path& path, std::string_view line);

// Creates the folder and those above it, with these permissions as far as the umask lets it; one that exists is fine.
Status make_directories(const std::filesystem::path& path, mode_t mode = 0777);

// "cannot <action> <path>: <the system's reason>", as kNotFound for a missing file or folder and kIo otherwise.
Status file_error(std::string_view action, const std::filesystem::path& path, int error_number);

// A new folder, removed with everything in it at the end of the object's life.
class TempDir {
 public:
  // In `parent`, or where the system keeps temporary files when that is empty.
  static Result<TempDir> create(const std::filesystem::path& parent = {});

  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TempDir(std::filesystem::path path) : path_(std::move(path)) {}
  void remove();
  std::filesystem::path path_;
};

}  // namespace hstujit
