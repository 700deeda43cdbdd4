// docs/parameters.md, made from the field lists that validate parameters: every operator's, with defaults and bounds.
#pragma once

#include <string>

namespace hstujit {

std::string parameters_page();

}  // namespace hstujit
