// JSON text to a value, with the place of a mistake as file:line:column.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// Comments (// and /* */) are allowed; a name that stands twice in one object is an error. `origin` names the text in
// messages, usually a path. Failure: kInvalidConfig, or kOutOfMemory.
Result<Json> parse_json_text(std::string_view text, const std::string& origin);

}  // namespace hstujit
