// The config of a kernel as records have it: JSON text in memory, an object in their files.
#pragma once

#include <string>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// kInvalidArgument when the text is no JSON object.
Result<Json> config_to_json(const std::string& config);

// The text of member "config" of `object`, in the names of today (compiler/support/config_aliases.h); empty where there
// is none, or no object.
std::string config_member(const Json& object);

}  // namespace hstujit
