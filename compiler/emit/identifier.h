// Which names a text of CUDA mentions: what it does not mention need not be emitted.
#pragma once

#include <string_view>

namespace hstujit {

// Where `text` has `name` as a whole identifier first, be it in a comment; npos where it has not.
size_t find_identifier(std::string_view text, std::string_view name);
inline bool names_identifier(std::string_view text, std::string_view name) {
  return find_identifier(text, name) != std::string_view::npos;
}

}  // namespace hstujit
