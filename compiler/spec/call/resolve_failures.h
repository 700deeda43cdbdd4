// Sentences about the arguments of calls that are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/call/resolve.h"

namespace hstujit {

// "a", "a or b", "a, b or c"
std::string either_of(const std::vector<std::string>& names);
// "(L, heads)"
std::string call_shape_text(const std::vector<std::string>& shape);
// The shapes that an argument may have, that of fewest axes first.
std::string call_shapes_text(const CallInterface& interface, const CallArgument& entry);

// `name` is no argument of the function.
Status no_argument(const CallFunction& function, const std::string& name);
// The argument has another rank, another shape, or another type than `allowed`.
Status wrong_rank(std::string_view name, const GivenTensor& tensor, const std::string& allowed);
Status wrong_shape(std::string_view name, const GivenTensor& tensor, const std::string& allowed);
Status wrong_dtype(std::string_view name, const GivenTensor& tensor, const std::string& allowed);

}  // namespace hstujit
