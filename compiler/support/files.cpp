#include "compiler/support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "compiler/support/descriptor.h"
#include "compiler/support/elf.h"
#include "compiler/support/folder.h"
#include "compiler/support/memory.h"
#include "compiler/support/text.h"
#include "compiler/support/write_signals.h"

namespace hstujit {
namespace {

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Status larger_than(size_t max_bytes, const std::filesystem::path& path) {
  return Status(Code::kIo, fmt::format("cannot read {}: it has more than {} bytes, the most for a file of its kind",
                                       quote(path.native()), max_bytes));
}

// The system would take the part before it for the whole name.
Status check_name(std::string_view action, const std::filesystem::path& path) {
  if (path.native().find('\0') == std::string::npos) return {};
  return Status(Code::kIo, fmt::format("cannot {} {}: a NUL is in its name", action, quote(path.native())));
}

Status check_kind(std::string_view action, const std::filesystem::path& path, mode_t mode) {
  if (S_ISREG(mode)) return {};
  const char* const kind = S_ISDIR(mode)    ? "a folder"
                           : S_ISFIFO(mode) ? "a pipe"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  return Status(Code::kIo, fmt::format("cannot {} {}: it is {}, no regular file", action, quote(path.native()), kind));
}

Result<Descriptor> open_to_read(const std::filesystem::path& path) {
  HSTUJIT_RETURN_IF_ERROR(check_regular_file("read", path));  // opening a device may do something already
  Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!descriptor.valid()) return file_error("open", path, errno);
  return descriptor;
}

// Where bytes for a path go.
struct Output {
  std::filesystem::path path;         // no link
  std::optional<struct stat> before;  // of the file there, where there is one
};

// The file at the end of path's links, as far as there are any: its place and what is there.
Result<Output> follow_links(const std::filesystem::path& path) {
  HSTUJIT_RETURN_IF_ERROR(check_name("write", path));
  constexpr int kMaxLinks = 40;  // as many as the system follows
  Output output{path, std::nullopt};
  struct stat info;
  for (int links = 0; ::lstat(output.path.c_str(), &info) == 0; ++links) {
    if (!S_ISLNK(info.st_mode)) {
      output.before = info;
      return output;
    }
    // /dev/stdout, /dev/fd/1 and their like: whoever writes there wants what this process has open, and no file in its
    // place.
    std::error_code error;
    const std::string folder = std::filesystem::weakly_canonical(output.path.parent_path(), error).native() + "/";
    if (folder.starts_with("/proc/")) {
      return Status(Code::kIo,
                    fmt::format("cannot write {}: it refers to an open file of a process; name a regular file",
                                quote(path.native())));
    }
    const std::filesystem::path target = std::filesystem::read_symlink(output.path, error);
    if (error || links == kMaxLinks) return file_error("write", path, error ? error.value() : ELOOP);
    output.path = output.path.parent_path() / target;  // the target alone where it is absolute
  }
  if (errno != ENOENT) return file_error("write", path, errno);
  return output;
}

Result<Output> find_output(const std::filesystem::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(Output output, follow_links(path));
  if (path.empty()) return Status(Code::kIo, "cannot write \"\": it is no name of a file");
  if (output.path.filename().empty()) return file_error("write", path, EISDIR);
  if (output.before) HSTUJIT_RETURN_IF_ERROR(check_kind("write", path, output.before->st_mode));
  return output;
}

// A failure to read a file of `size` bytes. No disk has to answer for one without any: files of the system, such as
// /proc/self/mem, fail as a disk would where there is nothing to read.
Status read_error(const Status& failure, size_t size) {
  return size == 0 ? Status(Code::kIo, failure.message()) : failure;
}

Result<std::string> read_all(int fd, size_t size, const std::filesystem::path& path, size_t max_bytes) {
  std::string bytes(std::min(size, max_bytes) + 1, '\0');
  size_t used = 0;
  while (true) {
    const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      return read_error(file_error("read", path, errno), size);
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > max_bytes) return larger_than(max_bytes, path);
    if (used == bytes.size()) bytes.resize(std::min(2 * bytes.size() + 4096, max_bytes + 1));
  }
  bytes.resize(used);
  return bytes;
}

// Whether a writer was cut short at the end of a regular file, as by a full disk. No, where that cannot be read. One
// that is still at it shows a part of its line, too, but not for long.
bool ends_within_a_line(const std::filesystem::path& path, int writing) {
  constexpr int kLooks = 10;
  const Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    struct stat info;
    char last = '\n';
    if (::fstat(writing, &info) != 0 || info.st_size == 0) return false;
    if (::pread(descriptor.number(), &last, 1, info.st_size - 1) != 1 || last == '\n') return false;
  }
  return true;
}

}  // namespace

Status file_error(std::string_view action, const std::filesystem::path& path, int error_number) {
  constexpr int kOfTheSystem[] = {EMFILE, ENFILE, ENOMEM, EIO, ESTALE};
  const bool system =
      std::find(std::begin(kOfTheSystem), std::end(kOfTheSystem), error_number) != std::end(kOfTheSystem);
  const Code code = error_number == ENOENT ? Code::kNotFound : system ? Code::kOutOfMemory : Code::kIo;
  return Status(code, fmt::format("cannot {} {}: {}", action, quote(path.native()),
                                  std::generic_category().message(error_number)));
}

Result<std::string> read_to_end(int fd, size_t size, const std::filesystem::path& path, size_t max_bytes) {
  if (size > max_bytes) return larger_than(max_bytes, path);
  return within_memory(fmt::format("the {} bytes of {}", size, quote(path.native())),
                       [&] { return read_all(fd, size, path, max_bytes); });
}

Result<std::string> read_head(int fd, const std::filesystem::path& path, size_t count) {
  std::string bytes(count, '\0');
  size_t used = 0;
  while (used < count) {
    const ssize_t got = ::pread(fd, bytes.data() + used, count - used, static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

int write_all(int fd, std::string_view bytes) {
  const WriteSignalsBlocked blocked;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

Result<std::string> read_open_file(int descriptor, const std::filesystem::path& path, size_t max_bytes) {
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return file_error("read", path, errno);
  HSTUJIT_RETURN_IF_ERROR(check_kind("read", path, info.st_mode));
  return read_to_end(descriptor, static_cast<size_t>(info.st_size), path, max_bytes);
}

Status check_regular_file(std::string_view action, const std::filesystem::path& path) {
  HSTUJIT_RETURN_IF_ERROR(check_name(action, path));
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return file_error(action, path, errno);
  return check_kind(action, path, info.st_mode);
}

Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const Descriptor descriptor, open_to_read(path));
  return read_open_file(descriptor.number(), path, max_bytes);
}

Result<FileHead> read_file_head(const std::filesystem::path& path, size_t count) {
  HSTUJIT_ASSIGN_OR_RETURN(const Descriptor descriptor, open_to_read(path));
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("read", path, errno);
  HSTUJIT_RETURN_IF_ERROR(check_kind("read", path, info.st_mode));
  Result<std::string> bytes = read_head(descriptor.number(), path, count);
  if (!bytes.ok()) return read_error(bytes.status(), static_cast<size_t>(info.st_size));
  return FileHead{std::move(*bytes), static_cast<uint64_t>(info.st_size)};
}

std::string plain_path(const std::filesystem::path& path) {
  std::filesystem::path plain = path.lexically_normal();
  std::error_code error;
  return std::filesystem::equivalent(path, plain, error) ? plain.native() : path.native();
}

bool is_program(const std::filesystem::path& path) {
  return check_program(path).ok() && ::access(path.c_str(), X_OK) == 0;
}

Status check_output(const std::filesystem::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const Output output, find_output(path));
  HSTUJIT_ASSIGN_OR_RETURN(const Folder folder, Folder::open(output.path.parent_path(), Trust::kAll));
  const std::filesystem::path place = folder.path().empty() ? "." : folder.path();
  if (::faccessat(AT_FDCWD, place.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return file_error("write into folder", place, errno);
  // In a sticky folder, such as /tmp, another user's file is for that user and the folder's alone to replace.
  struct stat info;
  const uid_t user = ::geteuid();
  if (output.before && user != 0 && ::stat(place.c_str(), &info) == 0 && (info.st_mode & S_ISVTX) != 0 &&
      user != info.st_uid && user != output.before->st_uid) {
    return file_error("replace", output.path, EPERM);
  }
  return {};
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const Output output, find_output(path));
  HSTUJIT_ASSIGN_OR_RETURN(const Folder folder, Folder::open(output.path.parent_path(), Trust::kAll));
  const Status status = folder.write(output.path.filename().native(), bytes, output.before ? &*output.before : nullptr);
  if (status.code() != Code::kNotFound || !output.before) return status;
  // The file is there: what is not to be had is a new one beside it, as in /proc.
  return Status(Code::kIo, fmt::format("cannot write {}: its folder takes no new file, which would take its place",
                                       quote(path.native())));
}

Status append_line(const std::filesystem::path& path, std::string_view line, size_t max_bytes) {
  // A pipe that nobody reads is an error, and nothing to wait for.
  Descriptor descriptor(open_retrying(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0666));
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("write", path, errno);
  if (S_ISREG(info.st_mode) && static_cast<size_t>(info.st_size) + line.size() >= max_bytes) {
    return Status(Code::kIo, fmt::format("cannot write {}: it has {} of at most {} bytes", quote(path.native()),
                                         info.st_size, max_bytes));
  }
  // One write per line: lines of several writers do not mix.
  const bool has_lines = S_ISREG(info.st_mode) && info.st_size > 0;
  const std::string_view before = has_lines && ends_within_a_line(path, descriptor.number()) ? "\n" : "";
  if (const int error = write_all(descriptor.number(), fmt::format("{}{}\n", before, line)))
    return file_error("write", path, error);
  if (const int error = descriptor.close()) return file_error("write", path, error);
  return {};
}

Status make_directories(const std::filesystem::path& path, mode_t mode) {
  int error = ::mkdir(path.c_str(), mode) == 0 ? 0 : errno;
  if (error == ENOENT && path.has_parent_path() && path.parent_path() != path) {
    HSTUJIT_RETURN_IF_ERROR(make_directories(path.parent_path(), mode));
    error = ::mkdir(path.c_str(), mode) == 0 ? 0 : errno;
  }
  struct stat info;
  if (error != 0 && ::stat(path.c_str(), &info) == 0) error = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
  return error == 0 ? Status() : file_error("create folder", path, error);
}

Result<TempDir> TempDir::create(const std::filesystem::path& parent) {
  std::error_code error;
  const std::filesystem::path base = parent.empty() ? std::filesystem::temp_directory_path(error) : parent;
  if (error) {
    const char* const named = std::getenv("TMPDIR");
    return Status(Code::kNotFound, fmt::format("TMPDIR is {}, which is no folder for temporary files",
                                               quote(named == nullptr ? "" : named)));
  }
  std::string name = (base / "hstujit-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) return file_error("create folder", name, errno);
  return TempDir(name);
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TempDir::~TempDir() { remove(); }

void TempDir::remove() {
  if (path_.empty()) return;
  std::error_code ignored;  // what cannot be removed stays; there is nobody to tell in a destructor
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hstujit
