// Small helpers over text that the standard library lacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// The parts between separators, empty ones included; no parts for empty text.
std::vector<std::string> split(std::string_view text, char separator);

// In double quotes; quotes, backslashes and control characters are escaped, so that the result is one line.
std::string quote(std::string_view text);

}  // namespace hstujit
