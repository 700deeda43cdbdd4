// JSON of files whose contents are not to be shown.
#pragma once

#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// As parse_json. A failure says what is wrong and where, and shows nothing of the text: it may be any file of this
// user.
Result<Json> parse_private_json(std::string_view text, const JsonRules& rules = {});

}  // namespace hstujit
