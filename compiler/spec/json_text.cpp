#include "compiler/spec/json_text.h"

#include <fmt/format.h>

#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

Result<Json> parse_json_text(std::string_view text, const std::string& origin) {
  Result<Json> json = parse_json(text, {.comments = true});
  if (json.ok()) return json;
  const bool has_place = json.status().code() == Code::kInvalidConfig;
  return Status(json.status().code(),
                fmt::format("{}:{}{}", printable(origin), has_place ? "" : " ", json.status().message()));
}

}  // namespace hstujit
