// JSON files that carry their own checksum, so that a damaged one is never believed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// The object with a last member "checksum", indented for people. Member "format" must say what the file is.
std::string format_checked_json(nlohmann::ordered_json object);

// The object without its checksum. kIo when the text is no object, has another "format", or does not match its
// checksum.
Result<nlohmann::ordered_json> parse_checked_json(std::string_view text, std::string_view format);

// Members of an object by type; the fallback when the member is missing or of another type.
std::string text_member(const nlohmann::ordered_json& object, const char* name);
int64_t integer_member(const nlohmann::ordered_json& object, const char* name, int64_t fallback);
double number_member(const nlohmann::ordered_json& object, const char* name, double fallback);

}  // namespace hstujit
