// Files: whole reads, atomic writes, folders, temporary folders. Failures name the path and the system's reason.
//
// Nothing here takes a file lock: readers see the old file or the new one, whatever happens to the writer, also on
// network file systems.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// kNotFound when there is no such file, kIo for everything else.
Result<std::string> read_file(const std::filesystem::path& path);

// The same for a place where others may have put anything: kIo for what is no regular file. It waits for no pipe's
// writer, and reads no device that has no end.
Result<std::string> read_regular_file(const std::filesystem::path& path);

// Creates or replaces `path`. The bytes go to a temporary file in the same folder, to the disk, and then into place by
// one rename; a writer that dies before that leaves a file named ".<name>.<digits>.tmp" behind and `path` as it was.
// When several write the same path, one of them wins whole. The folder must exist.
Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// The same, and what `path` held until that very moment; nothing where there was no file. The bytes are handed to one
// writer only, so of several that merge what they find, none loses what another has written. A file that
// cannot be read stays in its place, and the call fails; a folder that cannot be synced is no failure. A file system
// that cannot exchange files gives nothing either.
Result<std::optional<std::string>> exchange_file(const std::filesystem::path& path, std::string_view bytes);

// Adds `line` and a newline by one write to the end of `path`, which is created when missing.
Status append_line(const std::filesystem::path& path, std::string_view line);

// True for the name of a file that an interrupted write_file_atomically left behind.
bool is_abandoned_temporary(const std::filesystem::path& path);

// Creates the folder and those above it; one that exists is fine.
Status make_directories(const std::filesystem::path& path);

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
