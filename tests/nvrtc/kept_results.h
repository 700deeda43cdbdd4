// Kernels that tests compile with NVRTC, kept between runs (kept_path() of tests/paths.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/nvrtc/nvrtc.h"
#include "compiler/support/kept_files.h"

namespace hstujit {

// Where they are kept, named by compile_key().
KeptFiles kept_cubins();

// All that compiling depends on: the whole source, the names in it, each option, and the compiler by version and file.
std::string compile_key(const Nvrtc& nvrtc, const CompileInput& input, const std::vector<std::string>& options);

// The same as nvrtc.compile(input, log). The compiler's log and the cubin come from `results` where they are kept; the
// resources and rejects are read from them anew. A failure is not kept.
Result<CompileOutput> compile_once(const KeptFiles& results, const Nvrtc& nvrtc, const CompileInput& input,
                                   std::string* log = nullptr);

}  // namespace hstujit
