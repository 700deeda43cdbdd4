// What the program's exit code says; the one place where a status becomes one.
#pragma once

#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,       // something that was asked for failed; it is named
  kBadRequest = 2,   // arguments or config
  kUnavailable = 3,  // no usable device, driver or compiler
};

ExitCode exit_code(Code code);

// What the manual says of it.
std::string_view meaning(ExitCode code);

}  // namespace hstujit
