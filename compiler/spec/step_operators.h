// Which other operators have the kernels of one, where only its name is known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// The operators of the steps that instances of `op` have, `op` itself left out: of both directions, since a gradient
// may be a program too, and whatever the parameters are. In alphabetical order; empty where no direction is a program.
// `op` must be one of operator_names().
std::vector<std::string> step_operators(std::string_view op);

}  // namespace hstujit
