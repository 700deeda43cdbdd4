// Which names a text of CUDA mentions: what it does not mention need not be emitted.
#pragma once

#include <string_view>

namespace hstujit {

// Whether `text` has `name` as a whole identifier, be it in a comment.
bool names_identifier(std::string_view text, std::string_view name);

}  // namespace hstujit
