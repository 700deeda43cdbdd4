// Exit codes of the program; the one place where a status becomes one.
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

// Meaning of the code, for the manual.
std::string_view meaning(ExitCode code);

}  // namespace hstujit
