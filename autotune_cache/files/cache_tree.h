// The files of one cache directory: everything that reads, writes, lists or removes there goes through a CacheTree.
//
// The root may be a link, and lie behind some. Below it nothing but folders and regular files counts: a link is never
// followed, whatever is done. With Trust::kOwn a folder or a file that belongs to somebody who is neither root nor this
// user, or that anybody may write, does not count either; a root of which that is true, or whose place anybody can put
// another one into, is left alone with all that is in it, and not made where there is none. A folder that does not
// count is logged once.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/support/folder.h"
#include "compiler/support/log.h"
#include "compiler/support/status.h"

namespace hstujit {

// An item in a folder of the cache.
struct CacheItem {
  std::filesystem::path name;  // below the root: "v1/sm_90a/3f/3f0c….json"
  Status problem;              // why a look-up passes it over; kOk for a file that it would read
  FileInfo info;               // of such a file
  bool holds_others = false;   // it has the place of a folder, whose files are all passed over with it
};

class CacheTree {
 public:
  CacheTree(std::string root, Trust trust, Log log);

  const std::string& root() const { return root_; }

  // Why the whole directory is left alone, if it is. One that is not there, in a place where it may be made, is no
  // trouble.
  Status health() const;
  // The same for a sentence that names the root already.
  Status problem() const;

  // A folder below the root; `name` is relative to it. kNotFound when there is none; kIo for one that does not count.
  Result<Folder> open(const std::filesystem::path& name) const;
  // Calls `write` with such a folder, made where there is none: the root and what is missing above it for this user
  // alone, what is below with the root's permissions. Once more where that is kNotFound, as somebody has removed the
  // folder meanwhile. A failure is logged.
  Status change(const std::filesystem::path& name, const std::function<Status(const Folder&)>& write) const;

  // Calls visit for what is in `folder` and in the folders in it, `levels` deep, by name. Folders are visited only
  // where they do not count, on the way to `folder` and the root too, or lie too deep. `wanted` picks among the names
  // in `folder`; null: all of them. What disappears meanwhile is left out: other processes write and prune at the same
  // time.
  void walk(const std::filesystem::path& folder, int levels, const std::function<bool(std::string_view)>& wanted,
            const std::function<void(const CacheItem&)>& visit) const;

 private:
  Result<Folder> open_root() const;
  Result<Folder> make(const std::filesystem::path& name) const;
  Result<Folder> make_once(const std::filesystem::path& name) const;
  // As open(), but that it says how far it came and logs nothing.
  Result<Folder> reach(const std::filesystem::path& name, std::filesystem::path* reached) const;
  // Why the root does not count, as it was opened; where there is none, why none may be made.
  std::string distrust_of_root(const Result<Folder>& root) const;
  void log_once(std::string_view event, const std::filesystem::path& path, const Status& status) const;

  std::string root_;
  Trust trust_;
  Log log_;
  mutable std::mutex mutex_;  // of what follows; held for a look at it only
  mutable std::set<std::pair<std::string, std::string>> logged_;
  // The root whose place was looked at last, by device and number, and what was found.
  mutable std::optional<std::pair<dev_t, ino_t>> placed_;
  mutable std::string place_;
};

}  // namespace hstujit
