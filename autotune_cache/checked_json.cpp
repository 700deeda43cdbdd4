#include "autotune_cache/checked_json.h"

#include <fmt/format.h>

#include "compiler/support/hash.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

// Text that is not UTF-8 is replaced, not thrown: a path or a driver's name may be anything.
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string format_checked_json(Json object) {
  // Through text once, so that the checksum is of what a reader will see.
  object = Json::parse(dump(object), nullptr, false);
  object["checksum"] = sha256_hex(dump(object));
  return dump(object, 2) + '\n';
}

Result<Json> parse_checked_json(std::string_view text, std::string_view format) {
  Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return Status(Code::kIo, "it is no JSON object");
  if (const std::string found = text_member(object, "format"); found != format)
    return Status(Code::kIo, fmt::format("its format is {}, not {}", quote(found), quote(format)));
  const std::string checksum = text_member(object, "checksum");
  object.erase("checksum");
  if (checksum != sha256_hex(dump(object))) return Status(Code::kIo, "its checksum differs");
  return object;
}

std::string text_member(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

int64_t integer_member(const Json& object, const char* name, int64_t fallback) {
  const auto member = object.find(name);
  return member != object.end() && member->is_number_integer() ? member->get<int64_t>() : fallback;
}

double number_member(const Json& object, const char* name, double fallback) {
  const auto member = object.find(name);
  return member != object.end() && member->is_number() ? member->get<double>() : fallback;
}

}  // namespace hstujit
