// JSON text to a value, with the place of a mistake as file:line:column.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

// Comments (// and /* */) are allowed; a name that stands twice in one object is an error. `origin` names the text in
// messages, usually a path. Failure: kInvalidConfig.
Result<Json> parse_json_text(std::string_view text, const std::string& origin);

// One line, shortened when long, safe for any bytes: for messages.
std::string brief_json(const Json& json);

}  // namespace hstujit
