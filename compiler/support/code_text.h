// C++ and CUDA source as what it means depends on it.
#pragma once

#include <string>
#include <string_view>

namespace hstujit {

// The code without comments and blank lines, each line without blanks around it and with one for each run of them
// inside, so that digests of it change with the code alone. Literals are left as they are, raw strings of several lines
// included, and so is what looks like a comment inside of them. For hashing: it need not be what people read, and in
// doubt it keeps a comment.
std::string without_comments(std::string_view code);

}  // namespace hstujit
