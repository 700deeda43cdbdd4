// Small helpers over text that the standard library lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// The parts between separators, empty ones included; no parts for empty text.
std::vector<std::string> split(std::string_view text, char separator);

bool is_among(std::string_view name, const std::vector<std::string>& names);

// Bytes that a sentence shows of a value that may be anything: no more bytes than these, and "..." where it has more.
inline constexpr size_t kLongestShown = 500;

// The text with bytes that are no UTF-8, as names of files may have, written as \xff.
std::string as_utf8(std::string_view text);

// One line of UTF-8: control characters and bytes that are no UTF-8 are written as \n and \xff, and what nobody sees as
// \u200b or \U000e0041.
std::string printable(std::string_view text, size_t longest = kLongestShown);

// The same in double quotes, with quotes and backslashes escaped.
std::string quote(std::string_view text, size_t longest = kLongestShown);

// For sentences: "1 row", "2 rows", "0 entries". The plural where it is not the noun with an s, or with ies for y.
std::string counted(int64_t count, std::string_view noun);
std::string counted(int64_t count, std::string_view noun, std::string_view plural);

// The beginning of a digest: enough to find its file by.
std::string shown_digest(std::string_view digest);

}  // namespace hstujit
