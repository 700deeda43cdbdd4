// Archives in the ustar format, of plain files with short names and without owners and times, in memory: what `tar -t`
// lists, and the same bytes for the same files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct TarEntry {
  std::string_view name;
  std::string_view bytes;
  size_t end = 0;  // in the archive: where the next one begins
};

// kInvalidArgument when the name has more than 100 characters.
Status append_to_tar(std::string& tar, std::string_view name, std::string_view bytes);
// Writes the end of an archive.
void finish_tar(std::string& tar);

// The entry whose header is at byte `at`, which refers to `tar`. kIo with what is wrong when there is none, or not
// whole. `size` is the archive's, of which `tar` may be the first bytes alone.
Result<TarEntry> read_tar_entry(std::string_view tar, size_t at, size_t size);

// The entries, which refer to `tar`. kIo with what is wrong when it is no such archive or ends early.
Result<std::vector<TarEntry>> read_tar(std::string_view tar);

}  // namespace hstujit
