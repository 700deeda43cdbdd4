#include "autotune_cache/files/member_types.h"

#include <fmt/format.h>

namespace hstujit {
namespace {

constexpr const char* kText = "a string";

bool is_text(const Json& value) { return value.is_string(); }

Status wrong_type(std::string_view where, std::string_view name, const Json& value, const char* type) {
  return Status(Code::kIo, fmt::format("{}{} is {}; it must be {}", where, name, brief_json(value), type));
}

Status check_type(const Json& object, std::string_view where, const char* name, bool (*is_type)(const Json&),
                  const char* type) {
  const auto member = object.find(name);
  return member == object.end() || is_type(*member) ? Status() : wrong_type(where, name, *member, type);
}

}  // namespace

Status check_text(const Json& object, std::string_view where, const char* name) {
  return check_type(object, where, name, is_text, kText);
}

Status check_texts(const Json& object, std::string_view where) {
  for (const auto& [name, value] : object.items()) {
    if (!is_text(value)) return wrong_type(where, name, value, kText);
  }
  return {};
}

Status check_integer(const Json& object, std::string_view where, const char* name) {
  return check_type(object, where, name, [](const Json& value) { return value.is_number_integer(); }, "an integer");
}

Status check_flag(const Json& object, std::string_view where, const char* name) {
  return check_type(object, where, name, [](const Json& value) { return value.is_boolean(); }, "true or false");
}

Status check_list(const Json& object, std::string_view where, const char* name) {
  return check_type(object, where, name, [](const Json& value) { return value.is_array(); }, "a list");
}

Status check_filled_object(const Json& object, std::string_view where, const char* name) {
  return check_type(
      object, where, name, [](const Json& value) { return value.is_object() && !value.empty(); },
      "an object with fields");
}

}  // namespace hstujit
