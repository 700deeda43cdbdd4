// Names of compute architectures.
#pragma once

#include <optional>
#include <string_view>

namespace hstujit {

// The number of an architecture: 90 of "sm_90" and "sm_90a". Nothing for any other text: "sm_", the digits of a number
// from 10 to 9999, then at most one suffix, "a" or "f".
std::optional<int> arch_number(std::string_view arch);

}  // namespace hstujit
