// Says what a config asks for and, where a device is known, which kernels that is. Compiles nothing.
#include <map>
#include <optional>

#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "operations/configs/operation.h"

namespace hstujit {

namespace {

// Where no device is named, a machine without a GPU is no mistake of the config.
Result<std::optional<DeviceSpec>> known_target(Engine& engine, const Config& config, const OperationOptions& options) {
  const bool named = !options.arch.empty() || config.device;
  Result<DeviceSpec> device = engine.target(options.arch.c_str(), config.device, options.device);
  if (device.ok()) return std::optional(*std::move(device));
  const Code code = device.status().code();
  if (!named && (code == Code::kNoDriver || code == Code::kNoDevice)) return std::optional<DeviceSpec>();
  return device.status();
}

// Selects the parameters that differ from their defaults and, where the operator has them, the data type and the heads.
Json shown_parameters(const OpSpec& spec, const Json& all) {
  Json shown = Json::object();
  for (const char* name : {"dtype", "heads"}) {
    if (all.contains(name)) shown[name] = all[name];
  }
  const Json differing = json_or_null(key_text(spec)), rules = operator_schema(spec.op())["properties"];
  for (const auto& [name, value] : differing.items()) {
    const bool usual = rules.contains(name) && rules[name].contains("default") && rules[name]["default"] == value;
    if (name != "op" && (!usual || shown.contains(name))) shown[name] = value;
  }
  return shown;
}

Status add_kernel(Engine& engine, const DeviceSpec& device, const Task& key, Json& json) {
  const auto choice = choose_kernel(engine, *key.instance->spec, key.direction, device, key.bucket, key.restriction);
  if (!choice.ok()) return choice.status();
  json["config"] = to_json(choice->config);
  json["describe"] = describe(choice->config);
  choice->write(json);
  json["why"] = choice->why;
  return {};
}

}  // namespace

OperationResult check(Engine& engine, const Config& config, const OperationOptions& options) {
  const auto tasks = list_kernels(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = known_target(engine, config, options);
  if (!device.ok()) return {Json::object(), device.status()};
  std::vector<Task> keys = *list_keys(engine, config, options.op_name);
  if (*device) keys = with_batch_classes(keys, **device);

  const LengthsOfKeys lengths(*tasks);
  OperationResult result;
  TaskProgress progress(options, "choose", keys.size());
  size_t without_kernel = 0;
  Json instances = Json::array();
  std::map<std::string, size_t> places;  // of instances, by name
  for (const Task& key : keys) {
    const Instance& instance = *key.instance;
    // Kernels of one instance need not follow one another: those of a program's step stand where the step does.
    const auto [place, added] = places.emplace(instance.name, instances.size());
    if (added) {
      const Json spec = instance.spec->to_json();
      instances.push_back({{"name", instance.name},
                           {"op", instance.spec->op()},
                           {"dtype", spec.contains("dtype") ? spec["dtype"] : Json(nullptr)},
                           {"spec", spec},
                           {"parameters", shown_parameters(*instance.spec, spec)},
                           {"keys", Json::array()}});
      if (const std::string note = instance.spec->note(); !note.empty()) instances.back()["note"] = note;
    }
    Json json = key.to_json();
    if (key.has_length()) json["max_seq_len"] = lengths.of(key);
    if (*device) {
      const Status status = within_memory("its kernel", [&] { return add_kernel(engine, **device, key, json); });
      if (!status.ok()) {
        json["error"] = error_json(status);
        ++without_kernel;
        result.fail(status.with_context(key.label()));
      }
    }
    progress.done(key);
    instances[place->second]["keys"].push_back(std::move(json));
  }
  result.report = {{"valid", true},
                   {"device", *device ? to_json(**device) : Json(nullptr)},
                   {"length_mode", to_string(length_mode_of(engine, config))},
                   {"deterministic", restriction_of(engine, config).deterministic},
                   {"keys", keys.size()},
                   {"without_kernel", without_kernel},
                   {"instances", std::move(instances)}};
  return result;
}

}  // namespace hstujit
