// The JSON Schema of the config file, made from the same field lists that validate it: for editors.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace hstujit {

// Draft 2020-12. Operators' parameters that must be given may also come from "defaults", which a schema cannot say; so
// an entry of "ops" requires its name and op alone.
nlohmann::ordered_json config_schema();

// The operator's parameters as an entry of "ops" may have them, by name: num_targets and num_contexts may also be
// counts there.
nlohmann::ordered_json config_parameters(std::string_view op);

}  // namespace hstujit
