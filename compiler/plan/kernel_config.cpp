#include "compiler/plan/kernel_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/fields_json.h"
#include "compiler/support/config_aliases.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

constexpr const char* kSkeleton = "skeleton";

// The defaults of every family that has kernels, in the order of Family.
std::vector<KernelConfig::Tunables> defaults_of_families() {
  using Tunables = KernelConfig::Tunables;
  return []<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::vector<Tunables>{Tunables(std::in_place_index<kIndex>)...};
  }(std::make_index_sequence<std::variant_size_v<Tunables>>());
}

// Lists the fields for which `changed` is true.
template <typename Changed>
Json write(const KernelConfig& config, const Changed& changed) {
  Json json = Json::object();
  json[kSkeleton] = config.skeleton;
  const auto write_fields = [&](const auto& object) {
    const std::decay_t<decltype(object)> defaults;
    for_each_field(object, [&](const auto& field, const auto& value) {
      if (changed(value, defaults.*(field.member))) json[std::string(field.name)] = write_field(value);
    });
  };
  std::visit(write_fields, config.tunables);
  write_fields(config.sanitizer);
  return json;
}

// Each object's names are extra names for the other.
template <typename Tunables>
void read_into(const Json& json, const std::string& path, Tunables& tunables, SanitizerSwitches& switches,
               Mistakes& mistakes) {
  std::vector<std::string_view> beside = field_names<SanitizerSwitches>();
  beside.emplace_back(kSkeleton);
  read_fields(json, path, tunables, mistakes, beside);
  for_each_field(switches, [&](const auto& field, auto& value) {
    const std::string place = join_path(path, field.name);
    const auto found = json.find(std::string(field.name));
    if (found != json.end()) mistakes.check(place, read_field(*found, field, place, value));
  });
}

// A number or a switch says its name; a text speaks for itself.
std::string words(std::string_view name, int64_t value) { return fmt::format("{}={}", name, value); }
std::string words(std::string_view name, bool value) { return value ? std::string(name) : fmt::format("no {}", name); }
std::string words(std::string_view, const std::string& value) { return value; }

// Writes the fields that come first, in short form; those fields are at their defaults in `said` then.
template <typename Tile>
  requires requires(Tile tile) { tile.block_m; }
std::string tile_words(const Tile& config, Tile& said) {
  if (config.block_m == 0 && config.block_n == 0) return {};
  said.block_m = config.block_m;
  said.block_n = config.block_n;
  return fmt::format(" {}x{}", config.block_m, config.block_n);
}
std::string tile_words(const auto&, auto&) { return {}; }

}  // namespace

std::string_view activation_of(const KernelConfig& config) {
  return std::visit(
      [](const auto& tunables) -> std::string_view {
        if constexpr (requires { tunables.activation; }) {
          return tunables.activation;
        } else {
          return "accurate";
        }
      },
      config.tunables);
}

Json to_json(const KernelConfig& config) {
  return write(config, [](const auto&, const auto&) { return true; });
}

std::string key_text(const KernelConfig& config) {
  return dump_json(write(config, [](const auto& value, const auto& initial) { return value != initial; }));
}

bool same_registers(const KernelConfig& a, KernelConfig b) {
  if (a.skeleton != b.skeleton || a.tunables.index() != b.tunables.index()) return false;
  std::visit(
      [&]<typename Tunables>(const Tunables& of_a) {
        auto& of_b = std::get<Tunables>(b.tunables);
        for_each_field(of_b, [&](const auto& field, auto& value) {
          if (field.keeps_registers) value = of_a.*(field.member);
        });
      },
      a.tunables);
  return a == b;
}

namespace {

// The fields that are wrong go to `mistakes`.
Result<KernelConfig> read_config(const Json& given, const std::string& path, Mistakes& mistakes) {
  const Json json = with_current_names(given);
  KernelConfig config;
  const auto skeleton = json.find(kSkeleton);
  if (!json.is_object() || skeleton == json.end() || !skeleton->is_string()) {
    return Status(Code::kInvalidConfig,
                  fmt::format("{} is {}; allowed: a JSON object with the name of a skeleton, \"{}\", and its fields",
                              path, brief_json(json), kSkeleton));
  }
  config.skeleton = skeleton->get<std::string>();
  const auto found = find_skeleton(config.skeleton);
  if (!found.ok()) return Status(Code::kInvalidConfig, fmt::format("{}: {}", path, found.status().message()));
  config.tunables = defaults_of_families().at(static_cast<size_t>((*found)->family()));
  std::visit([&](auto& tunables) { read_into(json, path, tunables, config.sanitizer, mistakes); }, config.tunables);
  return config;
}

}  // namespace

Result<KernelConfig> parse_kernel_config(const Json& given, const std::string& path) {
  Mistakes mistakes;
  Result<KernelConfig> config = read_config(given, path, mistakes);
  HSTUJIT_RETURN_IF_ERROR(mistakes.first());
  return config;
}

Status check_config_fields(const Json& given, const std::string& path) {
  const Json json = with_current_names(given);
  if (!json.is_object()) return value_error(path, json, "a JSON object of config fields");
  Mistakes mistakes;
  if (json.contains(kSkeleton)) {
    HSTUJIT_RETURN_IF_ERROR(read_config(json, path, mistakes).status());
    return mistakes.status();
  }
  SanitizerSwitches switches;
  std::vector<KernelConfig::Tunables> families = defaults_of_families();
  std::vector<std::string_view> names = field_names<SanitizerSwitches>();
  names.emplace_back(kSkeleton);
  std::vector<FieldSlots> objects = {field_slots(switches)};
  for (KernelConfig::Tunables& family : families)
    objects.push_back(std::visit([](auto& tunables) { return field_slots(tunables); }, family));
  for (const FieldSlots& slots : objects) {
    for (const FieldSlot& slot : slots) {
      if (std::find(names.begin(), names.end(), slot.rules.name) == names.end()) names.push_back(slot.rules.name);
    }
  }
  check_names(json, path, names, mistakes);
  // A field that several families have is right where it is for one of them.
  for (const auto& [name, value] : json.items()) {
    Status wrong;
    bool right = false;
    for (const FieldSlots& slots : objects) {
      for (const FieldSlot& slot : slots) {
        if (slot.rules.name != name || right) continue;
        const Status status = slot.read(value, slot.rules, join_path(path, name), slot.value);
        right = status.ok();
        if (wrong.ok()) wrong = status;
      }
    }
    if (!right) mistakes.check(join_path(path, name), wrong);
  }
  return mistakes.status();
}

std::string describe(const KernelConfig& config) {
  const size_t slash = config.skeleton.rfind('/');
  std::string text = slash == std::string::npos ? config.skeleton : config.skeleton.substr(slash + 1);
  const auto append_changed = [&](const auto& object) {
    std::decay_t<decltype(object)> said;
    text += tile_words(object, said);
    for_each_field(object, [&](const auto& field, const auto& value) {
      if (value == said.*(field.member)) return;
      text += ' ';
      text += words(field.name, value);
    });
  };
  std::visit(append_changed, config.tunables);
  append_changed(config.sanitizer);
  return text;
}

}  // namespace hstujit
