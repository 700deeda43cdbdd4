#include "compiler/plan/kernel_config.h"

#include <fmt/format.h>

#include "compiler/spec/fields_json.h"
#include "compiler/support/json.h"

namespace hstujit {

Json to_json(const KernelConfig& config) { return fields_to_json(config); }

std::string key_text(const KernelConfig& config) {
  const KernelConfig defaults;
  Json json = Json::object();
  for_each_field(config, [&](const auto& field, const auto& value) {
    if (value != defaults.*(field.member)) json[std::string(field.name)] = write_field(value);
  });
  return dump_json(json);
}

Result<KernelConfig> parse_kernel_config(const Json& json) {
  KernelConfig config;
  HSTUJIT_RETURN_IF_ERROR(fields_from_json(json, "config", config));
  return config;
}

namespace {

// A number or a switch says its name; a text speaks for itself.
std::string words(std::string_view name, int64_t value) { return fmt::format("{}={}", name, value); }
std::string words(std::string_view name, bool value) { return value ? std::string(name) : fmt::format("no {}", name); }
std::string words(std::string_view, const std::string& value) { return value; }

}  // namespace

std::string describe(const KernelConfig& config) {
  const size_t slash = config.skeleton.rfind('/');
  std::string text = slash == std::string::npos ? config.skeleton : config.skeleton.substr(slash + 1);
  if (config.block_m > 0 || config.block_n > 0) text += fmt::format(" {}x{}", config.block_m, config.block_n);
  KernelConfig defaults;
  // Said already.
  defaults.skeleton = config.skeleton;
  defaults.block_m = config.block_m;
  defaults.block_n = config.block_n;
  for_each_field(config, [&](const auto& field, const auto& value) {
    if (value == defaults.*(field.member)) return;
    text += ' ';
    text += words(field.name, value);
  });
  return text;
}

}  // namespace hstujit
