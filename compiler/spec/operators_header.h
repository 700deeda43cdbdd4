// include/hstujit/operators.hpp, made from the field lists that validate parameters: a struct for each operator.
#pragma once

#include <string>

namespace hstujit {

std::string operators_header();

}  // namespace hstujit
