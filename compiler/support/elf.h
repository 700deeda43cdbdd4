// Sizes in the headers of a shared library or a program, compared with the file before it is mapped: a page behind the
// file's end is no error of the loader's, but the end of the process that touches it.
#pragma once

#include <filesystem>

#include "compiler/support/status.h"

namespace hstujit {

// kIo unless `path` is a regular file that begins as a shared library of this machine and has all of the bytes that its
// segments are mapped from; kNotFound without a file.
Status check_shared_library(const std::filesystem::path& path);

// The same of a program, which may be no ELF file at all, but a script.
Status check_program(const std::filesystem::path& path);

}  // namespace hstujit
