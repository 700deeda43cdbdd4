// JSON files that carry their own checksum, so that a damaged one is never believed.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// The object with a last member "checksum", indented for people. Member "format" must say what the file is.
std::string format_checked_json(Json object);

// The object without its checksum, which is in *checksum where that is asked for. kIo when the text is no object, has
// another "format", or does not match its checksum; kOutOfMemory.
Result<Json> parse_checked_json(std::string_view text, std::string_view format, std::string* checksum = nullptr);

}  // namespace hstujit
