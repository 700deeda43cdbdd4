#include "compiler/spec/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "compiler/spec/config.h"
#include "compiler/spec/instance_rules.h"

namespace hstujit {

namespace {

Json object_schema(Json properties, Json required = Json::array()) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

template <typename T>
Json object_schema_of() {
  Json schema = fields_schema<T>();
  return object_schema(schema["properties"], schema["required"]);
}

Json integer_schema(const FieldRules& rules) {
  return {{"type", "integer"}, {"minimum", rules.min}, {"maximum", rules.max}, {"description", rules.doc}};
}

Json list_of(Json items) { return {{"type", "array"}, {"minItems", 1}, {"items", std::move(items)}}; }

Json lengths_schema() {
  Json uniform = object_schema_of<UniformLengths>();
  uniform["description"] = "drawn at random";
  Json file = object_schema(
      {{"file", {{"type", "string"}, {"description", "one length a line, path relative to this file"}}}}, {"file"});
  Json schema = Json::object();
  schema["description"] = "lengths of the sequences in generated inputs";
  schema["oneOf"] = Json::array({list_of(integer_schema(kLengthRules)), file, uniform});
  return schema;
}

// Fields that an entry must have, unless the defaults do.
std::vector<std::string> required_fields(std::string_view op) {
  std::vector<std::string> names = operator_schema(op)["required"];
  const std::vector<std::string_view>& own = instance_field_names(op);
  for (const char* size : {"max_seq_len", "rows"}) {
    if (std::find(own.begin(), own.end(), size) != own.end()) names.emplace_back(size);
  }
  return names;
}

// Those in which some instance of the operator has kernels.
Json directions_of(std::string_view op) {
  Json directions = Json::array();
  const Result<OpSpecPtr> spec = smallest_op_spec(op);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    if (!spec.ok() || (*spec)->supports(direction)) directions.push_back(std::string(to_string(direction)));
  }
  return directions;
}

Json instance_properties(std::string_view op) {
  const Json max_seq_len = integer_schema(kMaxSeqLenRules);
  Json properties = Json::object();
  // Not only dots; and no line end, before which `$` matches in some languages.
  properties["name"] = {{"type", "string"},
                        {"pattern", "^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$(?!\\n)"},
                        {"maxLength", kLongestName},
                        {"description", "how commands name this instance"}};
  properties["op"] = {{"type", "string"}};
  properties["directions"] = list_of({{"enum", directions_of(op)}});
  properties["directions"]["uniqueItems"] = true;
  properties["max_seq_len"]["oneOf"] = Json::array({max_seq_len, list_of(max_seq_len)});
  properties["lengths"] = lengths_schema();
  properties["rows"] = integer_schema(kRowsRules);
  properties["rows"]["description"] = fmt::format("{}, for operators without sequences", kRowsRules.doc);
  properties["alpha"] = {
      {"type", "number"},
      {"minimum", std::numeric_limits<float>::lowest()},
      {"maximum", std::numeric_limits<float>::max()},
      {"description", "launch argument alpha in generated calls; 1 / attn_dim, or 1, when left out"}};
  const std::vector<std::string_view>& names = instance_field_names(op);
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  for (const char* name : {"max_seq_len", "lengths", "rows", "alpha"}) {
    if (!has(name)) properties.erase(name);
  }
  if (has("small_batches")) {
    properties["small_batches"] = {
        {"type", "boolean"},
        {"default", false},
        {"description", "forward launches of few tiles get a kernel of their own, tuned by itself"}};
  }
  if (has("delta_len")) {
    const Json rows = integer_schema(kDeltaLenRules);
    properties["delta_len"]["description"] =
        "rows of q of each sequence in generated inputs, 64 when left out; a list, with jagged_queries or "
        "targets_only, holds one number for each in turn";
    properties["delta_len"]["oneOf"] = Json::array({rows, list_of(rows)});
  }
  return properties;
}

Json pair_of(const char* name, Json value) {
  Json object = Json::object();
  object[name] = std::move(value);
  return object;
}
Json any_of(Json first, Json second) { return pair_of("anyOf", Json::array({std::move(first), std::move(second)})); }
Json requires_field(const std::string& name) { return pair_of("required", Json::array({name})); }

// An object whose member `name` is there, and as `condition` says.
Json has_member(const char* name, Json condition) {
  Json schema = requires_field(name);
  schema["properties"][name] = std::move(condition);
  return schema;
}

// A default is right for one of the operators that know it.
void add_default(const std::string& name, const Json& rules, Json& defaults) {
  if (!defaults.contains(name)) {
    defaults[name] = rules;
  } else if (Json& known = defaults[name]; !known.contains("anyOf")) {
    if (known != rules) known = any_of(known, rules);
  } else if (Json& all = known["anyOf"]; std::find(all.begin(), all.end(), rules) == all.end()) {
    all.push_back(rules);
  }
}

// An entry or the defaults have `name`, where the entry's operator, which may be that of the defaults, is one of `ops`.
Json is_given(const std::string& name, const Json& ops) {
  const auto entries = [](Json condition) {
    return pair_of("properties", pair_of("ops", pair_of("items", std::move(condition))));
  };
  const Json one_of_these = has_member("op", pair_of("enum", ops));
  Json own = entries(any_of(requires_field(name), pair_of("not", one_of_these)));
  own["if"] = has_member("defaults", one_of_these);
  own["then"] = entries(any_of(requires_field(name), requires_field("op")));
  Json schema = pair_of("if", pair_of("type", "object"));
  schema["then"] = any_of(has_member("defaults", requires_field(name)), std::move(own));
  return schema;
}

}  // namespace

Json config_parameters(std::string_view op) {
  Json properties = operator_schema(op)["properties"];
  for (const std::string_view field : kCountedFields) {
    if (!properties.contains(field)) continue;
    Json& counted = properties[std::string(field)];
    counted["type"] = {"boolean", "integer"};
    counted["minimum"] = kCountRules.min;
    counted["maximum"] = kCountRules.max;
    counted["description"] = counted.value("description", "") + "; a count says how many in generated inputs";
  }
  return properties;
}

Json config_schema() {
  Json defaults = Json::object(), entries = Json::array(), whole_entries = Json::array();
  Json operators = Json::array();
  std::map<std::string, Json> needed_by;  // some of them, by field
  for (const std::string_view op : operator_names()) {
    const Json parameters = config_parameters(op);
    Json properties = instance_properties(op);
    for (const Json& own : {properties, parameters}) {
      for (const auto& [name, rules] : own.items()) add_default(name, rules, defaults);
    }
    operators.push_back(std::string(op));
    properties["op"] = {{"const", std::string(op)}};
    properties.update(parameters);
    Json whole = Json::array({"op"});
    for (const std::string& name : required_fields(op)) {
      needed_by[name].push_back(std::string(op));
      whole.push_back(name);
    }
    whole_entries.push_back({{"properties", {{"op", {{"const", std::string(op)}}}}}, {"required", whole}});
    entries.push_back(object_schema(std::move(properties), {"name"}));
  }
  defaults.erase("name");
  defaults["op"] = pair_of("enum", std::move(operators));
  Json device = Json::object();
  device["description"] = "architecture, product name or DeviceSpec file; the GPU present when left out";
  Json device_spec = object_schema_of<DeviceSpec>();
  device_spec["properties"]["name"]["maxLength"] = kLongestDeviceName;
  device_spec["properties"]["name"]["pattern"] = "^[ -~]*$(?!\\n)";
  device_spec["properties"]["arch"]["pattern"] = "^sm_(?!90f?$)[1-9][0-9]{1,3}[af]?$(?!\\n)";
  device["oneOf"] = Json::array({{{"type", "string"}}, std::move(device_spec)});

  Json properties = Json::object();
  properties["$schema"] = {{"type", "string"}};
  properties["version"] = {{"const", 1}};
  properties["device"] = device;
  properties["tuning"] = object_schema_of<Tuning>();
  properties["defaults"] = object_schema(std::move(defaults));
  properties["ops"] = list_of({{"anyOf", entries}});

  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "hstu-jit config"}};
  schema.update(object_schema(std::move(properties), {"version", "ops"}));
  // An entry says its operator, unless the defaults do.
  schema["if"] = {{"type", "object"},
                  {"required", {"defaults"}},
                  {"properties", {{"defaults", {{"type", "object"}, {"required", {"op"}}}}}}};
  schema["else"]["properties"]["ops"]["items"]["required"] = Json::array({"op"});
  for (const auto& [name, ops] : needed_by) schema["allOf"].push_back(is_given(name, ops));
  // A bare list of entries is a config, too.
  schema["type"] = {"object", "array"};
  schema["minItems"] = 1;
  schema["items"]["allOf"] = Json::array({{{"$ref", "#/properties/ops/items"}}, {{"anyOf", whole_entries}}});
  return schema;
}

}  // namespace hstujit
