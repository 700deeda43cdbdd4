// Results of long computations, kept between processes in files that are named by the digest of what each depends on.
//
// Trouble with a file or with the folder is a miss: the computation then runs again. A file whose bytes are not those
// that were written is one, too, and so is all that somebody other than root and this user may have written
// (compiler/support/trust.h), since machine code is among what is kept. Any number of processes may share a folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/support/folder.h"
#include "compiler/support/status.h"

namespace hstujit {

class KeptFiles {
 public:
  KeptFiles() = default;  // keeps nothing
  // The folder is made by the first keep(), for this user alone. An empty path keeps nothing. When it has more than
  // `max_files` files, a quarter of them goes, those first that nobody has read for longest.
  KeptFiles(std::filesystem::path folder, size_t max_files) : folder_(std::move(folder)), max_files_(max_files) {}

  // `key`: a hexadecimal digest.
  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, std::string_view value) const;

 private:
  Result<Folder> open() const;
  void make_room(const Folder& folder) const;

  std::filesystem::path folder_;
  size_t max_files_ = 0;
};

}  // namespace hstujit
