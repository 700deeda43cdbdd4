// Text from files, caches, devices and users, made safe for a terminal. Of the same characters as printable() of
// text.h: control characters (C0, DEL, C1), separators of lines and paragraphs, marks that change the direction of
// writing, and bytes that are no UTF-8. What is escaped already stays as it is, so that text may pass more than once.
#pragma once

#include <string>
#include <string_view>

namespace hstujit {

// As printable(), of any length, but line ends and tabs stay.
std::string printable_lines(std::string_view text);

// The text of a whole JSON document, which keeps its value: "\u202e". Bytes that are no UTF-8 become U+FFFD.
std::string printable_json(std::string_view json);

}  // namespace hstujit
