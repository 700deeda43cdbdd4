#include "compiler/support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "compiler/support/descriptor.h"
#include "compiler/support/folder.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Status file_error(std::string_view action, const std::filesystem::path& path, int error_number) {
  const Code code = error_number == ENOENT ? Code::kNotFound : Code::kIo;
  return Status(code, fmt::format("cannot {} {}: {}", action, quote(path.native()),
                                  std::generic_category().message(error_number)));
}

Result<std::string> read_to_end(int fd, size_t size, const std::filesystem::path& path) {
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

Result<std::string> read_file(const std::filesystem::path& path) {
  const Descriptor descriptor(open_retrying(path, O_RDONLY));
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("read", path, errno);
  if (S_ISDIR(info.st_mode)) return file_error("read", path, EISDIR);
  return read_to_end(descriptor.number(), static_cast<size_t>(info.st_size), path);
}

Result<std::string> read_regular_file(const std::filesystem::path& path) {
  const Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat info;
  if (::fstat(descriptor.number(), &info) != 0) return file_error("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return Status(Code::kIo, fmt::format("cannot read {}: it is no regular file", quote(path.native())));
  return read_to_end(descriptor.number(), static_cast<size_t>(info.st_size), path);
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const Folder folder, Folder::open(path.parent_path(), Trust::kAll));
  return folder.write(path.filename().native(), bytes);
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
