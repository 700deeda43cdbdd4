// JSON of a value type from its field list: reading with sentences for every mistake, writing in field order, schema.
//
// A field whose default is outside its own rules (a dimension of 0, an empty name) must be given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields.h"
#include "compiler/spec/json_text.h"
#include "compiler/spec/types.h"
#include "compiler/support/status.h"

namespace hstujit {

// "ops[2]" and "heads" -> "ops[2].heads"; no dot when `path` is empty.
std::string join_path(const std::string& path, std::string_view name);

// kInvalidConfig: "<path> is <value>; allowed: <allowed>".
Status value_error(const std::string& path, const Json& value, std::string_view allowed);

// Fails unless `json` is an object whose names are all among `allowed`; names the nearest allowed one.
Status check_names(const Json& json, const std::string& path, const std::vector<std::string_view>& allowed);

// One value of each type a field may have. A failure names `path`, the value, and what `rules` allow.
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, int64_t& value);
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, double& value);
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, bool& value);
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, std::string& value);
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, DataType& value);
Status read_field(const Json& json, const FieldRules& rules, const std::string& path, MatmulPrecision& value);

inline Json write_field(int64_t value) { return value; }
inline Json write_field(double value) { return value; }
inline Json write_field(bool value) { return value; }
inline Json write_field(const std::string& value) { return value; }
inline Json write_field(DataType value) { return std::string(to_string(value)); }
inline Json write_field(MatmulPrecision value) { return std::string(to_string(value)); }

// Whether a value obeys the rules; enumerations and texts by their spelling.
bool allowed_by(const FieldRules& rules, const Json& value);

// What the rules allow, in words, with the field's doc.
std::string describe_rules(const FieldRules& rules, const Json& example);

// JSON Schema of one field; `initial` gives the type and, unless the field is required, the default.
Json field_schema(const FieldRules& rules, const Json& initial);

template <typename T>
std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  std::apply([&](const auto&... f) { (names.push_back(f.name), ...); }, T::fields());
  return names;
}

// Every field, in declaration order.
template <typename T>
Json fields_to_json(const T& object) {
  Json json = Json::object();
  for_each_field(object,
                 [&](const auto& field, const auto& value) { json[std::string(field.name)] = write_field(value); });
  return json;
}

// Fills `object` from `json`; names outside the field list and `extra` are errors. Fields left out keep their value.
template <typename T>
Status fields_from_json(const Json& json, const std::string& path, T& object,
                        const std::vector<std::string_view>& extra = {}) {
  std::vector<std::string_view> names = field_names<T>();
  names.insert(names.end(), extra.begin(), extra.end());
  HSTUJIT_RETURN_IF_ERROR(check_names(json, path, names));
  Status status;
  for_each_field(object, [&](const auto& field, auto& value) {
    if (!status.ok()) return;
    const auto found = json.find(std::string(field.name));
    if (found != json.end()) {
      status = read_field(*found, field, join_path(path, field.name), value);
    } else if (const Json initial = write_field(value); !allowed_by(field, initial)) {
      status = Status(Code::kInvalidConfig,
                      join_path(path, field.name) + " is missing; allowed: " + describe_rules(field, initial));
    }
  });
  return status;
}

// {"properties": {...}, "required": [...]} of a type with its defaults.
template <typename T>
Json fields_schema() {
  const T defaults;
  Json properties = Json::object(), required = Json::array();
  for_each_field(defaults, [&](const auto& field, const auto& value) {
    const Json initial = write_field(value);
    properties[std::string(field.name)] = field_schema(field, initial);
    if (!allowed_by(field, initial)) required.push_back(std::string(field.name));
  });
  return {{"properties", properties}, {"required", required}};
}

}  // namespace hstujit
