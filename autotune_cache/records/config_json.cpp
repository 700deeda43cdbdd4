#include "autotune_cache/records/config_json.h"

#include <fmt/format.h>

#include "compiler/support/config_aliases.h"
#include "compiler/support/text.h"

namespace hstujit {

Result<Json> config_to_json(const std::string& config) {
  Json json = json_or_null(config);
  if (json.is_object()) return json;
  return Status(Code::kInvalidArgument, fmt::format("config is {}; it must be a JSON object", quote(config)));
}

std::string config_member(const Json& object) {
  if (!object.is_object()) return "";
  const auto config = object.find("config");
  return config != object.end() && config->is_object() ? dump_json(with_current_names(*config)) : std::string();
}

}  // namespace hstujit
