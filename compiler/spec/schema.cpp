#include "compiler/spec/schema.h"

#include <algorithm>

#include "compiler/spec/config.h"
#include "compiler/spec/limits.h"

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

Json integer_schema(int64_t minimum, int64_t maximum, const char* description) {
  return {{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}, {"description", description}};
}

Json list_of(Json items) { return {{"type", "array"}, {"minItems", 1}, {"items", std::move(items)}}; }

Json lengths_schema() {
  Json uniform = object_schema_of<UniformLengths>();
  uniform["description"] = "drawn at random";
  Json file = object_schema(
      {{"file", {{"type", "string"}, {"description", "one length a line, path relative to this file"}}}}, {"file"});
  Json schema = Json::object();
  schema["description"] = "lengths of the sequences in generated inputs";
  schema["oneOf"] = Json::array({list_of(integer_schema(0, kMaxSeqLen, "rows of a sequence")), file, uniform});
  return schema;
}

Json instance_properties(std::string_view op) {
  const Json max_seq_len = integer_schema(1, kMaxSeqLen, "no sequence is longer");
  Json properties = Json::object();
  properties["name"] = {
      {"type", "string"}, {"pattern", "^[A-Za-z0-9_.-]+$"}, {"description", "how commands name this instance"}};
  properties["op"] = {{"type", "string"}};
  properties["directions"] = list_of({{"enum", {"forward", "backward"}}});
  properties["max_seq_len"]["oneOf"] = Json::array({max_seq_len, list_of(max_seq_len)});
  properties["lengths"] = lengths_schema();
  properties["rows"] = integer_schema(0, kMaxSeqLen, "rows of the whole problem, for operators without sequences");
  properties["alpha"] = {{"type", "number"},
                         {"description", "launch argument alpha in generated calls; 1 / attn_dim when left out"}};
  const std::vector<std::string_view> names = instance_field_names(op);
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
    const Json rows = integer_schema(0, kMaxSeqLen, "rows of q of a sequence");
    properties["delta_len"]["description"] =
        "rows of q of each sequence in generated inputs, 64 when left out; a list, with jagged_queries, holds one "
        "number for each in turn";
    properties["delta_len"]["oneOf"] = Json::array({rows, list_of(rows)});
  }
  return properties;
}

// The operator's parameters as they stand in a config, where num_targets may also be a count.
Json parameters_of(std::string_view op) {
  Json properties = operator_schema(op)["properties"];
  if (properties.contains("num_targets")) {
    Json& targets = properties["num_targets"];
    targets["type"] = {"boolean", "integer"};
    targets["minimum"] = 0;
    targets["maximum"] = kMaxSeqLen;
    targets["description"] = targets.value("description", "") + "; a count says how many in generated inputs";
  }
  return properties;
}

}  // namespace

Json config_schema() {
  Json defaults = Json::object(), entries = Json::array();
  for (const std::string_view op : operator_names()) {
    const Json parameters = parameters_of(op);
    Json properties = instance_properties(op);
    defaults.update(properties);
    defaults.update(parameters);
    properties["op"] = {{"const", std::string(op)}};
    properties.update(parameters);
    entries.push_back(object_schema(std::move(properties), {"name"}));
  }
  defaults.erase("name");
  Json device = Json::object();
  device["description"] = "architecture, product name or DeviceSpec file; the GPU present when left out";
  device["oneOf"] = Json::array({{{"type", "string"}}, object_schema_of<DeviceSpec>()});

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
  // A bare list of entries is a config, too.
  schema["type"] = {"object", "array"};
  schema["minItems"] = 1;
  schema["items"]["allOf"] = Json::array({{{"$ref", "#/properties/ops/items"}}, {{"required", Json::array({"op"})}}});
  return schema;
}

}  // namespace hstujit
