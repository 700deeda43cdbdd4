// Names that the configs of kernels had in earlier libraries. Tuning records, choices, frozen files and bundles hold
// them for as long as somebody keeps those, so whoever reads one asks here.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hstujit {

// The same config in the names of today. What is no object, or has no such names, is given back as it is.
nlohmann::ordered_json with_current_names(nlohmann::ordered_json config);

}  // namespace hstujit
