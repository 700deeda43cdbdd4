// A family of operators: those that share skeletons, a lowering for the host, configs and a measure of a problem's size.
#pragma once

#include <string_view>

namespace hstujit {

enum class Family { kAttention, kRow };

constexpr std::string_view to_string(Family family) { return family == Family::kAttention ? "attention" : "row"; }

}  // namespace hstujit
