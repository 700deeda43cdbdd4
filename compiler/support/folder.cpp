#include "compiler/support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <string_view>

#include "compiler/support/files.h"
#include "compiler/support/memory.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr size_t kTemporaryDigits = 16;
constexpr int kDeepest = 32;  // folders that are removed within each other
constexpr const char* kLink = "it is a symbolic link, and none is followed here";

int openat_retrying(int folder, const char* name, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::openat(folder, name, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool is_link(int folder, const char* name) {
  struct stat info;
  return ::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

FileInfo file_info(const struct stat& info) {
  return {S_ISDIR(info.st_mode),
          static_cast<uint64_t>(info.st_size),
          {static_cast<int64_t>(info.st_mtim.tv_sec), static_cast<int64_t>(info.st_mtim.tv_nsec)}};
}

// Why a file with these attributes is not read; empty when it may be. A folder is for others to judge.
std::string problem_of(const struct stat& info, Trust trust) {
  if (S_ISLNK(info.st_mode)) return kLink;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "it is no regular file";
  return trust == Trust::kOwn ? distrust(info) : std::string();
}

Status because(std::string_view action, const fs::path& path, std::string_view reason) {
  return Status(Code::kIo, fmt::format("cannot {} {}: {}", action, quote(path.native()), reason));
}

// The names in an open folder, which is opened anew for it; nothing and errno when that cannot be.
std::optional<std::vector<std::string>> names_in(int folder) {
  const int fd = openat_retrying(folder, ".", O_RDONLY | O_DIRECTORY);
  if (fd < 0) return std::nullopt;
  std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd), &::closedir);
  if (listing == nullptr) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return std::nullopt;
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  // A part of a listing would say that the rest is not there.
  if (const int error = errno; error != 0) {
    listing.reset();
    errno = error;
    return std::nullopt;
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Permissions that a new file may have at most, whatever the umask: one that anybody may write is not believed
// (trust.h), be it of a cache, a bundle or a list of choices.
constexpr mode_t kTrusted = 0775;

// Gives a new file the owner and the permissions of another one; 0 or an error number. An owner or a group that this
// process may not give stays, and the file's own group may then do what everybody may.
int resemble(int file, const struct stat& other) {
  struct stat own;
  if (::fstat(file, &own) != 0) return errno;
  mode_t mode = other.st_mode & kTrusted;
  if (own.st_uid != other.st_uid && ::fchown(file, other.st_uid, static_cast<gid_t>(-1)) != 0 && errno != EPERM)
    return errno;
  if (own.st_gid != other.st_gid && ::fchown(file, static_cast<uid_t>(-1), other.st_gid) != 0) {
    if (errno != EPERM) return errno;
    mode = (mode & ~static_cast<mode_t>(S_IRWXG)) | ((mode & S_IRWXO) << 3);
  }
  return ::fchmod(file, mode) == 0 ? 0 : errno;
}

// Whether both are one file that nobody has written meanwhile.
bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Removes all that can be removed; the rest stays with the folders that hold it.
void remove_all_in(int parent, const std::string& name, dev_t device, int levels) {
  const Descriptor folder(openat_retrying(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  struct stat info;
  if (!folder.valid() || ::fstat(folder.number(), &info) != 0 || info.st_dev != device || levels == 0) return;
  const auto names = names_in(folder.number());
  if (!names) return;
  for (const std::string& entry : *names) {
    if (::unlinkat(folder.number(), entry.c_str(), 0) != 0) remove_all_in(folder.number(), entry, device, levels - 1);
  }
  ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

Result<Folder> Folder::open_at(int at, const char* name, int flags, fs::path path, Trust trust) {
  Descriptor descriptor(openat_retrying(at, name, O_PATH | O_DIRECTORY | flags));
  struct stat info;
  if (descriptor.valid() && ::fstat(descriptor.number(), &info) == 0)
    return Folder(std::move(descriptor), std::move(path), info, trust);
  const int error = errno;
  if ((flags & O_NOFOLLOW) != 0 && (error == ENOTDIR || error == ELOOP) && is_link(at, name))
    return because("open folder", path, kLink);
  return file_error("open folder", path, error);
}

FileTime file_time_in(std::chrono::seconds ahead) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return {(seconds + ahead).count(), std::chrono::nanoseconds(now - seconds).count()};
}

Result<Folder> Folder::open(const fs::path& path, Trust trust) {
  return open_at(AT_FDCWD, path.empty() ? "." : path.c_str(), 0, path, trust);
}

Result<Folder> Folder::folder(const std::string& name) const {
  HSTUJIT_ASSIGN_OR_RETURN(Folder found, open_at(number(), name.c_str(), O_NOFOLLOW, path_ / name, trust_));
  if (const std::string problem = problem_of(found.info_, trust_); !problem.empty())
    return because("use folder", found.path_, problem);
  return found;
}

Result<Folder> Folder::make_folder(const std::string& name) const {
  // Anything that exists already is judged by folder().
  if (::mkdirat(number(), name.c_str(), info_.st_mode & 0777) != 0 && errno != EEXIST)
    return file_error("create folder", path_ / name, errno);
  return folder(name);
}

Result<FileInfo> Folder::look(const std::string& name) const {
  struct stat info;
  if (::fstatat(number(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return file_error("look at", path_ / name, errno);
  if (std::string problem = problem_of(info, trust_); !problem.empty()) return Status(Code::kIo, std::move(problem));
  return file_info(info);
}

bool Folder::has_folder_or_link(const std::string& name) const {
  struct stat info;
  return ::fstatat(number(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         (S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode));
}

Result<std::vector<std::string>> Folder::names() const {
  auto names = names_in(number());
  if (!names) return file_error("list folder", path_, errno);
  return std::move(*names);
}

Result<Descriptor> Folder::open_file(const std::string& name, FileInfo* info) const {
  Descriptor descriptor(openat_retrying(number(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!descriptor.valid()) {
    const int error = errno;
    if (error == ELOOP) return because("open", path_ / name, kLink);
    return file_error("open", path_ / name, error);
  }
  struct stat found;
  if (::fstat(descriptor.number(), &found) != 0) return file_error("read", path_ / name, errno);
  std::string problem = problem_of(found, trust_);
  if (problem.empty() && S_ISDIR(found.st_mode)) problem = "it is no regular file";
  if (!problem.empty()) return because("read", path_ / name, problem);
  *info = file_info(found);
  return descriptor;
}

Result<std::string> Folder::read(const std::string& name, size_t max, FileInfo* info) const {
  FileInfo found;
  HSTUJIT_ASSIGN_OR_RETURN(const Descriptor descriptor, open_file(name, &found));
  if (info != nullptr) *info = found;
  return read_to_end(descriptor.number(), found.bytes, path_ / name, max);
}

Result<std::string> Folder::read_head(const std::string& name, size_t count, FileInfo* info) const {
  HSTUJIT_ASSIGN_OR_RETURN(const Descriptor descriptor, open_file(name, info));
  return hstujit::read_head(descriptor.number(), path_ / name, count);
}

// Named ".<name>.<16 digits>.tmp", with the name's beginning where that is too long, which no failure says: whoever
// reads that knows `name`. With the user's umask, which mkstemp would ignore.
Result<Descriptor> Folder::create_temporary(const std::string& name, std::string* temporary) const {
  constexpr size_t kRoom = NAME_MAX - 2 - kTemporaryDigits - kTemporarySuffix.size();
  while (true) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) return file_error("create", path_ / name, errno);
    *temporary = fmt::format(".{}.{:0{}x}{}", name.substr(0, kRoom), random, kTemporaryDigits, kTemporarySuffix);
    Descriptor descriptor(
        openat_retrying(number(), temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666 & kTrusted));
    if (descriptor.valid()) return descriptor;
    if (errno != EEXIST) return file_error("create", path_ / name, errno);
  }
}

Result<std::string> Folder::write_temporary(const std::string& name, std::string_view bytes,
                                            const struct stat* before) const {
  std::string temporary;
  HSTUJIT_ASSIGN_OR_RETURN(Descriptor descriptor, create_temporary(name, &temporary));
  int error = before == nullptr ? 0 : resemble(descriptor.number(), *before);
  if (error == 0) error = write_all(descriptor.number(), bytes);
  if (error == 0 && ::fsync(descriptor.number()) != 0) error = errno;
  const int close_error = descriptor.close();
  if (error == 0) error = close_error;
  if (error == 0) return temporary;
  ::unlinkat(number(), temporary.c_str(), 0);
  return file_error("write", path_ / name, error);
}

// Some network file systems cannot do it (EINVAL): the file is in place all the same.
Status Folder::sync() const {
  const Descriptor opened(openat_retrying(number(), ".", O_RDONLY | O_DIRECTORY));
  if (!opened.valid()) return file_error("open folder", path_, errno);
  if (::fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return file_error("sync folder", path_, errno);
  return {};
}

Status Folder::move_into_place(const std::string& temporary, const std::string& name) const {
  if (::renameat(number(), temporary.c_str(), number(), name.c_str()) != 0) {
    const Status status = file_error("replace", path_ / name, errno);
    ::unlinkat(number(), temporary.c_str(), 0);
    return status;
  }
  return sync();
}

Status Folder::write(const std::string& name, std::string_view bytes, const struct stat* before) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string temporary, write_temporary(name, bytes, before));
  return move_into_place(temporary, name);
}

// `temporary` is what an exchange has displaced and nobody can use; `ours` is what is in its place now, unless another
// writer has been there since. Takes no memory and opens nothing: the want of one may be what it is called for.
Status Folder::put_back(const std::string& temporary, const std::string& name, const struct stat& ours) const {
  const auto exchange_again = [&] {
    return ::renameat2(number(), temporary.c_str(), number(), name.c_str(), RENAME_EXCHANGE) == 0;
  };
  if (!exchange_again()) return file_error("put back", path_ / name, errno);
  struct stat taken;
  if (::fstatat(number(), temporary.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(taken, ours)) {
    ::unlinkat(number(), temporary.c_str(), 0);
  } else {
    // Another writer's, who came between: it stays, and the other one beside it, as of an interrupted write.
    exchange_again();
  }
  return {};
}

Result<std::optional<std::string>> Folder::exchange(const std::string& name, std::string_view bytes, size_t max,
                                                    const Accept& accept) const {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string temporary, write_temporary(name, bytes));
  struct stat ours;
  if (::fstatat(number(), temporary.c_str(), &ours, AT_SYMLINK_NOFOLLOW) != 0) {
    const Status status = file_error("look at", path_ / name, errno);
    ::unlinkat(number(), temporary.c_str(), 0);
    return status;
  }
  while (::renameat2(number(), temporary.c_str(), number(), name.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == ENOENT && ::linkat(number(), temporary.c_str(), number(), name.c_str(), 0) == 0) {
      ::unlinkat(number(), temporary.c_str(), 0);
      HSTUJIT_RETURN_IF_ERROR(sync());
      return std::optional<std::string>();
    }
    if (errno == EEXIST) continue;  // another writer's file appeared between the two calls
    HSTUJIT_RETURN_IF_ERROR(move_into_place(temporary, name));
    return std::optional<std::string>();
  }
  std::optional<std::string> displaced;
  const Status taken = within_memory("what a file held", [&]() -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(displaced, read(temporary, max));
    return accept ? accept(*displaced) : Status();
  });
  if (!taken.ok()) {
    displaced.reset();
    struct stat info;
    const bool known = ::fstatat(number(), temporary.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    // A link, a pipe or a device holds nothing that could be lost. A file that cannot be handed on, such as another
    // user's, and a folder go back.
    if (!known || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
      HSTUJIT_RETURN_IF_ERROR(put_back(temporary, name, ours));
      return taken;
    }
  }
  ::unlinkat(number(), temporary.c_str(), 0);
  // The new bytes are in place and the old ones in no file: they are the caller's, also when the folder cannot be
  // synced.
  [[maybe_unused]] const Status synced = sync();
  return displaced;
}

// To the present, which whoever may write the file may set; a time that is named may be set by its owner alone.
void Folder::touch(const std::string& name) const { ::utimensat(number(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

Status Folder::remove(const std::string& name) const {
  if (::unlinkat(number(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return file_error("remove", path_ / name, errno);
}

void Folder::remove_folder(const std::string& name) const { remove_all_in(number(), name, info_.st_dev, kDeepest); }

bool is_abandoned_temporary(const fs::path& path) {
  const std::string name = path.filename().native();
  const size_t tail = 1 + kTemporaryDigits + kTemporarySuffix.size();
  if (name.size() <= tail + 1 || name.front() != '.' || !name.ends_with(kTemporarySuffix)) return false;
  const size_t dot = name.size() - tail;
  return name[dot] == '.' &&
         name.find_first_not_of("0123456789abcdef", dot + 1) == name.size() - kTemporarySuffix.size();
}

}  // namespace hstujit
