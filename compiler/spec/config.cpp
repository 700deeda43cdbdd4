#include "compiler/spec/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/files.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What an entry of "ops" with that operator may hold.
std::vector<std::string> fields_of_entry(std::string_view op) {
  std::vector<std::string> names;
  for (const std::string_view name : instance_field_names(op)) names.emplace_back(name);
  const Json schema = operator_schema(op);
  for (const auto& [name, rules] : schema["properties"].items()) names.push_back(name);
  return names;
}

// Defaults may name anything that some operator or every instance has, but what makes an instance itself.
Status check_defaults(const Json& defaults) {
  std::vector<std::string> fields;
  for (const std::string_view op : operator_names()) {
    for (std::string& name : fields_of_entry(op)) {
      if (name != "name" && std::find(fields.begin(), fields.end(), name) == fields.end())
        fields.push_back(std::move(name));
    }
  }
  const std::vector<std::string_view> allowed(fields.begin(), fields.end());
  return check_names(defaults, "defaults", allowed);
}

// `entry` with the defaults that its operator knows and that it does not give itself.
Json with_defaults(const Json& entry, const Json& defaults) {
  if (!entry.is_object()) return entry;
  Json merged = entry;
  if (!merged.contains("op") && defaults.contains("op")) merged["op"] = defaults["op"];
  const auto op = merged.find("op");
  if (op == merged.end() || !op->is_string() || !contains(operator_names(), op->get_ref<const std::string&>()))
    return merged;
  const std::vector<std::string> known = fields_of_entry(op->get_ref<const std::string&>());
  for (const auto& [name, value] : defaults.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end() && !merged.contains(name)) merged[name] = value;
  }
  return merged;
}

Result<std::vector<Instance>> parse_instances(const Json& ops, const std::string& path, const Json& defaults,
                                              const fs::path& folder) {
  if (!ops.is_array() || ops.empty()) return value_error(path, ops, "a list of at least one operator instance");
  std::vector<Instance> instances;
  for (size_t index = 0; index < ops.size(); ++index) {
    const std::string place = fmt::format("{}[{}]", path, index);
    HSTUJIT_ASSIGN_OR_RETURN(Instance instance, parse_instance(with_defaults(ops[index], defaults), place, folder));
    for (size_t other = 0; other < index; ++other) {
      if (instances[other].name == instance.name) {
        return value_error(place + ".name", instance.name,
                           fmt::format("a name that {}[{}] does not have already", path, other));
      }
    }
    instances.push_back(std::move(instance));
  }
  return instances;
}

Result<DeviceSpec> parse_device(const Json& json, const fs::path& folder) {
  if (!json.is_string()) return parse_device_spec(json, "device");
  const std::string& name = json.get_ref<const std::string&>();
  Result<DeviceSpec> known = known_device(name);
  std::error_code ignored;
  if (known.ok() || !fs::is_regular_file(folder / name, ignored)) return known;
  return load_device_spec((folder / name).string());
}

Result<Config> read_config(const Json& json, const fs::path& folder) {
  HSTUJIT_RETURN_IF_ERROR(check_names(json, "", {"$schema", "version", "device", "tuning", "defaults", "ops"}));
  if (!json.contains("version")) return Status(Code::kInvalidConfig, "version is missing; allowed: 1");
  if (json["version"] != 1) return value_error("version", json["version"], "1");
  Config config;
  if (json.contains("device")) {
    HSTUJIT_ASSIGN_OR_RETURN(config.device, parse_device(json["device"], folder));
  }
  if (json.contains("tuning")) HSTUJIT_RETURN_IF_ERROR(fields_from_json(json["tuning"], "tuning", config.tuning));
  const Json defaults = json.value("defaults", Json::object());
  HSTUJIT_RETURN_IF_ERROR(check_defaults(defaults));
  if (!json.contains("ops"))
    return Status(Code::kInvalidConfig, "ops is missing; allowed: a list of at least one operator instance");
  HSTUJIT_ASSIGN_OR_RETURN(config.instances, parse_instances(json["ops"], "ops", defaults, folder));
  return config;
}

Result<Config> with_origin(Result<Config> result, const std::string& origin) {
  return result.ok() ? std::move(result) : result.status().with_context(origin);
}

}  // namespace

Result<const Instance*> Config::find(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const Instance& instance : instances) {
    if (instance.name == name) return &instance;
    names.push_back(instance.name);
  }
  return Status(Code::kNotFound,
                fmt::format("op {} is not in the config; it has: {}", quote(name), fmt::join(names, ", ")));
}

Result<Config> parse_config(std::string_view text, const std::string& origin, const fs::path& folder) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_json_text(text, origin));
  return with_origin(read_config(json, folder), origin);
}

Result<Config> load_config(const fs::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return parse_config(text, path.string(), path.parent_path());
}

}  // namespace hstujit
