// A benchmark grid: the list of instances that bench --grid times.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// The config of a grid: a bare list of entries of "ops" with files relative to `origin`. Text that is no JSON is
// returned as it is, for the library to say where the mistake is.
Result<std::string> config_of_grid(std::string_view text, const std::string& origin);

}  // namespace hstujit
