// A file of a test, of whatever kind.
#pragma once

#include "compiler/support/files.h"

namespace hstujit {

inline Result<std::string> whole_file(const std::filesystem::path& path) { return read_file(path, size_t{1} << 30); }

}  // namespace hstujit
