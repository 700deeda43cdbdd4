#include "autotune_cache/records/recorded_config.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/support/config_aliases.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr double kLargestWhole = 9007199254740992;  // 2^53: every whole number up to it has a value of its own

void drop_points(SortedJson& value) {
  if (value.is_structured()) {
    for (SortedJson& part : value) drop_points(part);
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kLargestWhole) value = static_cast<int64_t>(number);
  }
}

std::string canonical_text(const Json& json) {
  SortedJson sorted(json);
  drop_points(sorted);
  return dump_json(Json(sorted));
}

}  // namespace

std::string RecordedConfig::canonical(std::string_view text) {
  const Json json = json_or_null(text);
  return json.is_null() ? std::string(text) : canonical_text(json);
}

RecordedConfig RecordedConfig::member_of(const Json& object) {
  RecordedConfig member;
  if (!object.is_object()) return member;
  const auto config = object.find("config");
  if (config != object.end() && config->is_object()) member.text_ = canonical_text(with_current_names(*config));
  return member;
}

Result<Json> RecordedConfig::to_json() const {
  Json json = json_or_null(text_);
  if (json.is_object()) return json;
  return Status(Code::kInvalidArgument, fmt::format("config is {}; it must be a JSON object", quote(text_)));
}

}  // namespace hstujit
