// JSON files that carry their own checksum, so that a damaged one is never believed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// The object with a last member "checksum": indented for people, or on one line where that is all that fits into
// `max_bytes`. Member "format" must say what the file is. kInvalidArgument for what parse_checked_json would not take:
// more bytes, or lists and values beyond the limits of json.h.
Result<std::string> format_checked_json(Json object, size_t max_bytes);

// The object without its checksum, which is in *checksum where that is asked for. kIo when the text is no object, has
// another "format", or does not match its checksum; kOutOfMemory.
Result<Json> parse_checked_json(std::string_view text, std::string_view format, std::string* checksum = nullptr);

}  // namespace hstujit
