// JSON of a value type from its field list: reading with sentences for every mistake, writing in field order, schema.
//
// A field whose default is outside its own rules (a dimension of 0, an empty name) must be given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields.h"
#include "compiler/spec/json_place.h"
#include "compiler/spec/json_text.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/types.h"
#include "compiler/support/status.h"

namespace hstujit {

// kInvalidConfig: "<path> is <value>; allowed: <allowed>", with what is `meant` by the value where that is known.
Status value_error(const std::string& path, const Json& value, std::string_view allowed, std::string_view meant = {});

// The same for one that is none of the rules' choices, with the one that it may stand for. `example` has the field's
// type.
Status choice_error(const Json& json, const FieldRules& rules, const std::string& path, const Json& example);

// Bytes that are shown of a path with an unknown name, which may be of any length.
inline constexpr size_t kLongestUnknownName = 120;

// Each name of the object that is not among `allowed` is a mistake, with those that it may stand for. False, and a
// mistake itself, where `json` is no object. `op`: the operator whose fields they are, where they are those of one.
bool check_names(const Json& json, const std::string& path, const std::vector<std::string_view>& allowed,
                 Mistakes& mistakes, std::string_view op = {});

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

// Describes what the rules allow, with the field's doc.
std::string describe_rules(const FieldRules& rules, const Json& example);

// JSON Schema of one field; `initial` gives the type and, unless the field is required, the default.
Json field_schema(const FieldRules& rules, const Json& initial);

// The choices of a field, from its schema; none where it has no choices. One that may be an expression has them, too.
Json choices_in(const Json& schema);

template <typename T>
std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  std::apply([&](const auto&... f) { (names.push_back(f.name), ...); }, T::fields());
  return names;
}

// A field of an object: its rules, where the object has it, and read_field() and write_field() of its type.
struct FieldSlot {
  FieldRules rules;
  void* value;
  Status (*read)(const Json& json, const FieldRules& rules, const std::string& path, void* value);
  Json (*write)(const void* value);
};
using FieldSlots = std::vector<FieldSlot>;

template <typename Value>
Status read_slot(const Json& json, const FieldRules& rules, const std::string& path, void* value) {
  return read_field(json, rules, path, *static_cast<Value*>(value));
}
template <typename Value>
Json write_slot(const void* value) {
  return write_field(*static_cast<const Value*>(value));
}

// In declaration order. What is done with them is compiled once, and not for each type.
template <typename T>
FieldSlots field_slots(T& object) {
  FieldSlots slots;
  for_each_field(object, [&]<typename Value>(const FieldRules& rules, Value& value) {
    slots.push_back({rules, &value, read_slot<Value>, write_slot<Value>});
  });
  return slots;
}

Json write_slots(const FieldSlots& slots);
void read_slots(const Json& json, const std::string& path, const FieldSlots& slots, Mistakes& mistakes,
                const std::vector<std::string_view>& extra);
Json slots_schema(const FieldSlots& defaults);

// Every field, in declaration order.
template <typename T>
Json fields_to_json(T object) {
  return write_slots(field_slots(object));
}

// The canonical JSON of an operator whose parameters are one struct.
Json operator_json_of(std::string_view op, const FieldSlots& params);
template <typename T>
Json operator_json(std::string_view op, T params) {
  return operator_json_of(op, field_slots(params));
}

// Fills `object` from `json`; names outside the field list and `extra` are mistakes. Fields left out keep their value,
// and so do those that are wrong.
template <typename T>
void read_fields(const Json& json, const std::string& path, T& object, Mistakes& mistakes,
                 const std::vector<std::string_view>& extra = {}) {
  read_slots(json, path, field_slots(object), mistakes, extra);
}

// {"properties": {...}, "required": [...]} of a type with its defaults.
template <typename T>
Json fields_schema() {
  T defaults;
  return slots_schema(field_slots(defaults));
}

}  // namespace hstujit
