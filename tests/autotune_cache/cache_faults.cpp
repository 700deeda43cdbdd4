// Preloaded into a process (LD_PRELOAD): the file system calls of libc as a network file system, or a full disk,
// answers them. Only paths below CACHE_FAULTS_ROOT are touched.
//
//     CACHE_FAULTS_LOCKS=FILE   every file lock fails with ENOLCK, and the call is noted in FILE
//     CACHE_FAULTS_SLOW=N       opening, renaming and listing take up to N microseconds
//     CACHE_FAULTS_STALE=N      files of the last N milliseconds are often not there yet for stat and open,
//                               and are left out of listings; reading a file fails at times with ESTALE; files cannot
//                               be exchanged
//     CACHE_FAULTS_FULL=N       writing and synchronising fails with ENOSPC in N of 1000 calls
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <random>
#include <string>

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

long setting(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? 0 : strtol(value, nullptr, 10);
}

const std::string& root() {
  static const std::string path = getenv("CACHE_FAULTS_ROOT") == nullptr ? "" : getenv("CACHE_FAULTS_ROOT");
  return path;
}

bool ours(const char* path) {
  return path != nullptr && !root().empty() &&
         root().compare(0, std::string::npos, path, strnlen(path, root().size())) == 0;
}

std::string path_of(int fd) {
  char link[64];
  char path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

bool ours(int fd) { return !root().empty() && ours(path_of(fd).c_str()); }

bool ours(int folder, const char* path) {
  if (path == nullptr || path[0] == '/' || folder == AT_FDCWD) return ours(path);
  return ours(folder);
}

bool one_of(long per_mille) {
  thread_local std::mt19937 random(static_cast<unsigned>(getpid()) * 2654435761U);
  return static_cast<long>(random() % 1000) < per_mille;
}

void dawdle() {
  static const long max = setting("CACHE_FAULTS_SLOW");
  if (max > 0) usleep(static_cast<useconds_t>(one_of(100) ? max : max / 20));
}

// Applies to files alone: a client knows the folders that it made. Asks the kernel itself, so that no call here comes
// back to this file.
bool too_new(int folder, const char* path) {
  static const long max = setting("CACHE_FAULTS_STALE");
  if (max == 0 || !one_of(500)) return false;
  struct stat info;
  if (syscall(SYS_newfstatat, folder, path, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!S_ISREG(info.st_mode)) return false;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const long age_ms = (now.tv_sec - info.st_ctim.tv_sec) * 1000 + (now.tv_nsec - info.st_ctim.tv_nsec) / 1000000;
  return age_ms < max;
}

int fail(int error) {
  errno = error;
  return -1;
}

bool full() {
  static const long per_mille = setting("CACHE_FAULTS_FULL");
  return per_mille > 0 && one_of(per_mille);
}

int no_lock(const char* call) {
  if (const char* const file = getenv("CACHE_FAULTS_LOCKS")) {
    const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT, 0666));
    if (fd >= 0) {
      (void)!syscall(SYS_write, fd, call, strlen(call));
      syscall(SYS_close, fd);
    }
  }
  return fail(ENOLCK);
}

int open_or_fail(int folder, const char* path, int flags, mode_t mode) {
  if (ours(folder, path)) {
    dawdle();
    if ((flags & O_CREAT) == 0 && too_new(folder, path)) return fail(ENOENT);
    if ((flags & O_CREAT) != 0 && full()) return fail(ENOSPC);
  }
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

template <typename Stat>
int stat_or_fail(int folder, const char* path, Stat* info, int flags) {
  if (ours(folder, path) && too_new(folder, path)) return fail(ENOENT);
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, info, flags));
}

template <typename Entry>
Entry* list_or_skip(DIR* folder, Entry* (*read)(DIR*)) {
  if (!ours(dirfd(folder))) return read(folder);
  dawdle();
  Entry* entry = read(folder);
  while (entry != nullptr && too_new(dirfd(folder), entry->d_name)) entry = read(folder);
  return entry;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int flock(int, int) { return no_lock("flock\n"); }
int lockf(int, int, off_t) { return no_lock("lockf\n"); }
int lockf64(int, int, off64_t) { return no_lock("lockf\n"); }

int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) {
    return no_lock("fcntl\n");
  }
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}
int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl(fd, command, argument);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(folder, path, flags, mode);
}

int fstatat(int folder, const char* path, struct stat* info, int flags) {
  return stat_or_fail(folder, path, info, flags);
}
int fstatat64(int folder, const char* path, struct stat64* info, int flags) {
  return stat_or_fail(folder, path, info, flags);
}
int stat(const char* path, struct stat* info) { return stat_or_fail(AT_FDCWD, path, info, 0); }
int stat64(const char* path, struct stat64* info) { return stat_or_fail(AT_FDCWD, path, info, 0); }
int lstat(const char* path, struct stat* info) { return stat_or_fail(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW); }
int lstat64(const char* path, struct stat64* info) { return stat_or_fail(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW); }

struct dirent* readdir(DIR* folder) { return list_or_skip(folder, next<struct dirent*(DIR*)>("readdir")); }
struct dirent64* readdir64(DIR* folder) { return list_or_skip(folder, next<struct dirent64*(DIR*)>("readdir64")); }

int rename(const char* from, const char* to) {
  if (ours(to)) dawdle();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (ours(to_folder, to)) dawdle();
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (ours(to_folder, to)) {
    dawdle();
    if (flags != 0 && setting("CACHE_FAULTS_STALE") > 0) return fail(EINVAL);
  }
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

ssize_t read(int fd, void* bytes, size_t size) {
  static const bool stale = setting("CACHE_FAULTS_STALE") > 0;
  if (stale && ours(fd) && one_of(50)) return fail(ESTALE);
  return syscall(SYS_read, fd, bytes, size);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  if (full() && ours(fd)) {
    // As a disk fills up: a part of it goes through.
    if (size < 2 || one_of(500)) return fail(ENOSPC);
    size /= 2;
  }
  return syscall(SYS_write, fd, bytes, size);
}
int fsync(int fd) {
  if (full() && ours(fd)) return fail(ENOSPC);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

}  // extern "C"
#pragma GCC visibility pop
