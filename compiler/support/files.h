// Files by their paths: whole reads, atomic writes, folders, temporary folders. Failures name the path and the system's
// reason. compiler/support/folder.h is for places where others may have put anything.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// The bytes of a regular file, or of one that a link leads to. Every path may lead to anything, so nothing else is
// opened: no pipe's writer is waited for, and no device without an end is read. read_limits.h has `max_bytes` for each
// kind of file. kNotFound when there is no such file, kOutOfMemory when there is no memory for it, and kIo for what is
// no regular file, for a larger one and for everything else.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes);

// The first bytes of such a file, at most `count`, and its size.
struct FileHead {
  std::string bytes;
  uint64_t size = 0;
};
Result<FileHead> read_file_head(const std::filesystem::path& path, size_t count);

// Before another library or the system opens `path`, which would wait for a pipe's writer: kNotFound or kIo as "cannot
// <action> <path>: ..." unless it leads to a regular file.
Status check_regular_file(std::string_view action, const std::filesystem::path& path);

// The path without "." and "..", where it leads to the same file so: behind a link ".." is another folder.
std::string plain_path(const std::filesystem::path& path);

// Whether `path` leads to a regular file that this user may execute.
bool is_program(const std::filesystem::path& path);

// Reads an open file as read_file does; messages call it `path`.
Result<std::string> read_open_file(int descriptor, const std::filesystem::path& path, size_t max_bytes);

// To the end of an open regular file of `size` bytes, which messages call `path`, as read_file does. The size is a
// hint: the file may grow while it is read, and files of /proc say 0.
Result<std::string> read_to_end(int descriptor, size_t size, const std::filesystem::path& path, size_t max_bytes);

// The first bytes of an open regular file, at most `count`.
Result<std::string> read_head(int descriptor, const std::filesystem::path& path, size_t count);

// All of the bytes to an open file; 0, or the number of the error that ended it. No signal of a write ends the process.
int write_all(int descriptor, std::string_view bytes);

// Creates or replaces a file that somebody has named, as Folder::write does. The folder must exist. A link is followed,
// and the file that it leads to replaced; a new one gets the permissions of the old one, and its owner where this
// process may give it away. kIo for what is there and is no regular file: a device, a pipe or a folder stays.
Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Before a long work whose outcome goes to `path`: what write_file_atomically says of the file that is there, and of
// the folder, which must be there and take new files. A disk may still be full by then.
Status check_output(const std::filesystem::path& path);

// Adds `line` and a newline by one write to the end of `path`, which is created when missing. What another writer has
// left of a line of its own there is ended first. kIo for a regular file that would have more than `max_bytes`.
Status append_line(const std::filesystem::path& path, std::string_view line, size_t max_bytes = SIZE_MAX);

// Creates the folder and those above it, with these permissions as far as the umask lets it; one that exists is fine.
Status make_directories(const std::filesystem::path& path, mode_t mode = 0777);

// "cannot <action> <path>: <the system's reason>", as kNotFound for a missing file or folder, as kOutOfMemory where the
// system itself fails (is_system_failure), and kIo otherwise.
Status file_error(std::string_view action, const std::filesystem::path& path, int error_number);

// Whether a call failed for want of memory or of open files, or because a disk does not answer: nothing is known of the
// file then, and least of all that it is damaged.
inline bool is_system_failure(const Status& status) { return status.code() == Code::kOutOfMemory; }

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
