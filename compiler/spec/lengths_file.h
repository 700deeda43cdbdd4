// A file of lengths, which a config names.
#pragma once

#include <cstdint>
#include <filesystem>

#include "compiler/support/shared_integers.h"
#include "compiler/support/status.h"

namespace hstujit {

// One length a line, from 0 to kMaxSeqLen; blank lines and lines that begin with '#' are left out. Failure: what
// read_file says, or kInvalidConfig with the file and the line. Nothing that the file holds is shown: whoever wrote the
// config may have named any file that this user can read.
Result<SharedIntegers> read_lengths_file(const std::filesystem::path& path);

}  // namespace hstujit
