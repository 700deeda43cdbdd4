#include "compiler/support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include "compiler/support/descriptor.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr size_t kTemporaryDigits = 16;

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// 0 or the error number.
int write_all(int fd, std::string_view bytes) {
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

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

// Makes a rename in `folder` durable. Some network file systems cannot do it (EINVAL): the file is in place all the
// same.
Status sync_folder(const std::filesystem::path& folder) {
  Descriptor descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY));
  if (!descriptor.valid()) return file_error("open folder", folder, errno);
  if (::fsync(descriptor.number()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return file_error("sync folder", folder, errno);
  return {};
}

// Creates ".<name>.<16 digits>.tmp" beside `path`; with the user's umask, which mkstemp would ignore.
int create_temporary(const std::filesystem::path& path, std::filesystem::path& temporary) {
  while (true) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) return -1;
    const std::string name =
        fmt::format(".{}.{:0{}x}{}", path.filename().native(), random, kTemporaryDigits, kTemporarySuffix);
    temporary = folder_of(path) / name;
    const int fd = open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

Status write_and_sync(Descriptor& descriptor, const std::filesystem::path& temporary, std::string_view bytes) {
  int error = write_all(descriptor.number(), bytes);
  if (error == 0 && ::fsync(descriptor.number()) != 0) error = errno;
  const int close_error = descriptor.close();
  if (error == 0) error = close_error;
  return error == 0 ? Status() : file_error("write", temporary, error);
}

// A new file beside `path` that holds `bytes`, on the disk.
Result<std::filesystem::path> write_temporary(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path temporary;
  Descriptor descriptor(create_temporary(path, temporary));
  if (!descriptor.valid()) return file_error("create", temporary, errno);
  if (Status status = write_and_sync(descriptor, temporary, bytes); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return temporary;
}

// To the end. The size is a hint: the file may grow while it is read, and files of /proc say 0.
Result<std::string> read_all(int fd, size_t size, const std::filesystem::path& path) {
  std::string bytes(size + 1, '\0');
  size_t used = 0;
  while (true) {
    const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      return file_error("read", path, errno);
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used == bytes.size()) bytes.resize(2 * bytes.size() + 4096);
  }
  bytes.resize(used);
  return bytes;
}

Status move_into_place(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Status status = file_error("replace", path, errno);
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder(folder_of(path));
}

}  // namespace

Status file_error(std::string_view action, const std::filesystem::path& path, int error_number) {
  const Code code = error_number == ENOENT ? Code::kNotFound : Code::kIo;
  return Status(code, fmt::format("cannot {} {}: {}", action, quote(path.native()),
                                  std::generic_category().message(error_number)));
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const Descriptor descriptor(open_retrying(path, O_RDONLY));
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("read", path, errno);
  if (S_ISDIR(info.st_mode)) return file_error("read", path, EISDIR);
  return read_all(descriptor.number(), static_cast<size_t>(info.st_size), path);
}

Result<std::string> read_regular_file(const std::filesystem::path& path) {
  const Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return Status(Code::kIo, fmt::format("cannot read {}: it is no regular file", quote(path.native())));
  return read_all(descriptor.number(), static_cast<size_t>(info.st_size), path);
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::filesystem::path temporary, write_temporary(path, bytes));
  return move_into_place(temporary, path);
}

Result<std::optional<std::string>> exchange_file(const std::filesystem::path& path, std::string_view bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::filesystem::path temporary, write_temporary(path, bytes));
  while (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == ENOENT && ::link(temporary.c_str(), path.c_str()) == 0) {
      ::unlink(temporary.c_str());
      HSTUJIT_RETURN_IF_ERROR(sync_folder(folder_of(path)));
      return std::optional<std::string>();
    }
    if (errno == EEXIST) continue;  // another writer's file appeared between the two calls
    HSTUJIT_RETURN_IF_ERROR(move_into_place(temporary, path));
    return std::optional<std::string>();
  }
  Result<std::string> displaced = read_regular_file(temporary);
  if (!displaced.ok()) {
    // What cannot be read, another user's file or a folder, cannot be handed on: it goes back.
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0)
      return file_error("put back", path, errno);
    const Result<std::string> ours = read_regular_file(temporary);
    if (ours.ok() && *ours == bytes) {
      ::unlink(temporary.c_str());
    } else {
      // Another writer's, who came between: it stays, and the unreadable one beside it, as of an interrupted write.
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE);
    }
    return displaced.status();
  }
  ::unlink(temporary.c_str());
  // The new bytes are in place and the old ones in no file: they are the caller's, also when the folder cannot be
  // synced.
  [[maybe_unused]] const Status synced = sync_folder(folder_of(path));
  return std::optional(std::move(displaced).value());
}

Status append_line(const std::filesystem::path& path, std::string_view line) {
  Descriptor descriptor(open_retrying(path, O_WRONLY | O_APPEND | O_CREAT, 0666));
  if (!descriptor.valid()) return file_error("open", path, errno);
  // One write per line: lines of several writers do not mix.
  if (const int error = write_all(descriptor.number(), fmt::format("{}\n", line)))
    return file_error("write", path, error);
  if (const int error = descriptor.close()) return file_error("write", path, error);
  return {};
}

bool is_abandoned_temporary(const std::filesystem::path& path) {
  const std::string name = path.filename().native();
  const size_t tail = 1 + kTemporaryDigits + kTemporarySuffix.size();
  if (name.size() <= tail + 1 || name.front() != '.' || !name.ends_with(kTemporarySuffix)) return false;
  const size_t dot = name.size() - tail;
  return name[dot] == '.' &&
         name.find_first_not_of("0123456789abcdef", dot + 1) == name.size() - kTemporarySuffix.size();
}

Status make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return file_error("create folder", path, error.value());
  if (!std::filesystem::is_directory(path, error)) return file_error("create folder", path, ENOTDIR);
  return {};
}

Result<TempDir> TempDir::create(const std::filesystem::path& parent) {
  std::error_code error;
  const std::filesystem::path base = parent.empty() ? std::filesystem::temp_directory_path(error) : parent;
  if (error) return file_error("find the folder for temporary files", base, error.value());
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
