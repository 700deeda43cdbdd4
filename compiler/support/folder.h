// An open folder, and what is done in it by name.
//
// A name is one component of a path. A link in its place is never followed, and what is opened is judged by its
// descriptor: so nothing outside of the folder is read, written or removed, whatever others put there, and whenever.
// Nothing here takes a file lock: readers see the old file or the new one, whatever happens to the writer, also on
// network file systems.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/descriptor.h"
#include "compiler/support/status.h"
#include "compiler/support/trust.h"

namespace hstujit {

// Since 1970. Seconds have a number of their own: 64 bits of nanoseconds end in April 2262, and files need not.
struct FileTime {
  int64_t seconds = 0;
  int64_t nanoseconds = 0;  // of the second

  auto operator<=>(const FileTime&) const = default;
};

FileTime file_time_in(std::chrono::seconds ahead);  // of now, with so many seconds more; below 0: less

struct FileInfo {
  bool is_folder = false;
  uint64_t bytes = 0;
  FileTime written = {};  // last
};

class Folder {
 public:
  // The folder that `path` leads to, over links, too. It is not judged itself; what is in it is, as `trust` says.
  // kNotFound when there is none.
  static Result<Folder> open(const std::filesystem::path& path, Trust trust);

  const std::filesystem::path& path() const { return path_; }
  const struct stat& info() const { return info_; }  // as it was when it was opened

  // A folder in this one. kNotFound when there is none; kIo for what is no folder or is not to be trusted.
  Result<Folder> folder(const std::string& name) const;
  // The same, made with this folder's permissions, as far as the umask lets it, where there is none.
  Result<Folder> make_folder(const std::string& name) const;

  // Looks at an entry. kNotFound when it does not exist; kIo, with the reason alone, for what is neither a folder nor a
  // regular file, or is not to be trusted.
  Result<FileInfo> look(const std::string& name) const;
  // Whether a folder has that name, or a link, which may lead to one: neither need be one to look into.
  bool has_folder_or_link(const std::string& name) const;
  // The names of all that is there, sorted.
  Result<std::vector<std::string>> names() const;

  // The bytes of a regular file of at most `max` bytes, and what look() says of it. kNotFound when there is none,
  // kOutOfMemory when there is no memory for it, and kIo for everything else. It waits for no pipe's writer, and reads
  // no device that has no end.
  Result<std::string> read(const std::string& name, size_t max, FileInfo* info = nullptr) const;
  // Its first bytes, at most `count`, whatever its size.
  Result<std::string> read_head(const std::string& name, size_t count, FileInfo* info) const;

  // Creates or replaces a file. The bytes go to a temporary file, to the disk, and then into place by one rename; a
  // writer that dies before that leaves a file named ".<name>.<digits>.tmp" behind and the file as it was. When several
  // write the same name, one of them wins whole.
  // `before`: whose permissions and owner it gets, as far as this process may give them.
  Status write(const std::string& name, std::string_view bytes, const struct stat* before = nullptr) const;
  // The same, and what the file held until that very moment; nothing where there was no regular file. The bytes are
  // handed to one writer only, so of several that merge what they find, none loses what another has written. A file
  // that cannot be read, or is not to be trusted, stays in its place, and the call fails; a folder that cannot be
  // synced is no failure. A file system that cannot exchange files gives nothing either.
  // `accept` takes what the file held while it is still in a file: where that fails, as for want of memory, the file
  // goes back into its place, too.
  using Accept = std::function<Status(const std::string& displaced)>;
  Result<std::optional<std::string>> exchange(const std::string& name, std::string_view bytes, size_t max,
                                              const Accept& accept = nullptr) const;

  // Sets the time of the last write to the present, where this process may.
  void touch(const std::string& name) const;
  // Removes an entry that is not a folder; of a link, the link itself. A missing entry is fine.
  Status remove(const std::string& name) const;
  // A folder with all that is in it, as far as it can be removed: no other file system, and nothing very deep.
  void remove_folder(const std::string& name) const;

 private:
  Folder(Descriptor descriptor, std::filesystem::path path, const struct stat& info, Trust trust)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), info_(info), trust_(trust) {}
  static Result<Folder> open_at(int at, const char* name, int flags, std::filesystem::path path, Trust trust);

  int number() const { return descriptor_.number(); }
  Result<Descriptor> open_file(const std::string& name, FileInfo* info) const;
  Result<Descriptor> create_temporary(const std::string& name, std::string* temporary) const;
  // A new file for `name` that holds `bytes`, on the disk: its name.
  Result<std::string> write_temporary(const std::string& name, std::string_view bytes,
                                      const struct stat* before = nullptr) const;
  Status move_into_place(const std::string& temporary, const std::string& name) const;
  Status put_back(const std::string& temporary, const std::string& name, const struct stat& ours) const;
  // Makes a rename durable.
  Status sync() const;

  Descriptor descriptor_;  // for names in it alone: listing it needs more rights
  std::filesystem::path path_;
  struct stat info_;
  Trust trust_;
};

// True for the name of a file that an interrupted write left behind.
bool is_abandoned_temporary(const std::filesystem::path& path);

}  // namespace hstujit
