// A recording (HSTUJIT_RECORD): one line for each kernel that was missing somewhere, as an entry of a config's "ops".
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// The config that asks for what `text` lists, each once. Failure: kInvalidConfig with origin:line for a line that is no
// JSON object, or when there is none at all.
Result<std::string> config_of_recording(std::string_view text, const std::string& origin);

// The config of a benchmark grid: a bare list of entries of "ops" with files relative to `origin`. Text that is no JSON
// is returned as it is, for the library to say where the mistake is.
Result<std::string> config_of_grid(std::string_view text, const std::string& origin);

}  // namespace hstujit
