// Names that the configs of kernels, their fields and the values of those had in earlier libraries. Tuning records,
// choices, frozen files, overrides and bundles hold them for as long as somebody keeps those, so whoever reads one asks
// here.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hstujit {

// The same config, or fields of one, in the names of today. What is no object, or has no such names, is given back as
// it is.
nlohmann::ordered_json with_current_names(nlohmann::ordered_json config);

}  // namespace hstujit
