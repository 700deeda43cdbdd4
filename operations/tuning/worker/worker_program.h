// The way to the worker's program.
#pragma once

#include <optional>
#include <string>

#include "compiler/support/env.h"

namespace hstujit {

// HSTUJIT_WORKER, else hstujit-worker of this installation or build tree. None when the variable says "none" or there
// is no such file.
std::optional<std::string> worker_program(const Environment& environment);

}  // namespace hstujit
