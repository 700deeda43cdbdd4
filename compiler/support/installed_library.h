// A library of the same installation, opened when it is first needed and never unloaded.
#pragma once

#include <string>

#include "compiler/support/dynamic_library.h"
#include "compiler/support/env.h"

namespace hstujit {

// Opens what `variable` names and nothing else when that is set; else `file` beside this library, then where the loader
// looks. kNoCompiler with every place looked at. `what` names it in messages: "the compiler library".
Result<DynamicLibrary> open_installed_library(const std::string& what, const Environment& environment, Env variable,
                                              const std::string& file);

// kNoCompiler unless the ABI that `library` has is the one that is needed.
Status check_abi(const std::string& what, const DynamicLibrary& library, int has, int needed);

}  // namespace hstujit
