#include "compiler/spec/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "compiler/spec/aliases.h"
#include "compiler/spec/instance_reader.h"
#include "compiler/spec/program.h"
#include "compiler/spec/step_json.h"
#include "compiler/support/file_kind.h"
#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

// Defaults may name anything that some operator or every instance has, but what makes an instance itself.
bool check_defaults(const Json& defaults, Mistakes& mistakes) {
  std::vector<std::string_view> allowed;
  for (const std::string& name : entry_field_names("")) {
    if (name != "name") allowed.push_back(name);
  }
  return check_names(defaults, "defaults", allowed, mistakes);
}

// The name below an entry that the path of one of its values begins with; empty for the entry itself.
std::string name_in(const std::string& entry, const std::string& path) {
  if (path.size() <= entry.size() + 1) return {};
  const std::string rest = path.substr(entry.size() + 1);
  return rest.substr(0, rest.find_first_of(".["));
}

// Reports a mistake in a default once, in the words of the first entry that takes it, since operators that allow the
// same values describe them differently.
class DefaultsToldOnce {
 public:
  // `path` is that of the entry.
  void apply(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes) {
    std::set<std::string> told;
    std::erase_if(mistakes.kept(), [&](Mistake& mistake) {
      if (!entry.inherits(name_in(path, mistake.path))) return false;
      const std::string sentence = "defaults" + mistake.status.message().substr(path.size());
      mistake.path = "defaults" + mistake.path.substr(path.size());
      mistake.status = Status(mistake.status.code(), fmt::format("{}; {} takes it", sentence, path));
      told.insert(mistake.path);
      return told_.contains(mistake.path);
    });
    told_.merge(told);
  }

 private:
  std::set<std::string> told_;  // paths
};

// A default that no entry takes is held to what the operators that know it allow: it is right for one of them.
void check_default_not_taken(std::string_view name, const InstanceEntry::Members& defaults, InstanceReader& reader,
                             Mistakes& mistakes) {
  std::vector<Json> entries;
  if (name == "op") {
    entries.push_back(Json::object());
  } else {
    for (const std::string_view op : operator_names()) {
      if (is_entry_field(op, name)) entries.push_back(step_json(op, {}));
    }
  }
  std::vector<Mistake> first;
  for (const Json& entry : entries) {
    Mistakes found;
    reader.read(InstanceEntry(entry, defaults), "defaults", found);
    const std::string place = join_path("defaults", name);
    std::erase_if(found.kept(), [&](const Mistake& mistake) {
      return mistake.path != place && !mistake.path.starts_with(place + ".") && !mistake.path.starts_with(place + "[");
    });
    if (found.empty()) return;
    if (first.empty()) first = std::move(found.kept());
  }
  for (Mistake& mistake : first) mistakes.add(std::move(mistake));
}

// A default that no entry takes, where it stands for a field that one would take and does not have.
void check_default_meant(const InstanceEntry::Member& member, const Json& ops, const InstanceEntry::Members& defaults,
                         Mistakes& mistakes) {
  std::set<std::string> asked;  // operators
  for (const Json& own : ops) {
    const InstanceEntry entry(own, defaults);
    if (entry.op().empty() || !asked.insert(entry.op()).second) continue;
    const std::vector<std::string>& fields = entry_field_names(entry.op());
    for (const std::string_view meant : meant_names(member.name, {fields.begin(), fields.end()})) {
      if (entry.find(meant) != nullptr) continue;
      const std::string place = join_path("defaults", member.name);
      mistakes.check(
          place, Status(Code::kInvalidConfig, fmt::format("{} (value {}) is a field of no entry, did you mean "
                                                          "{}? {} has that",
                                                          place, brief_json(*member.value), quote(meant), entry.op())));
      return;
    }
  }
}

constexpr std::string_view kOpsAllowed = "a list of at least one operator instance";

// Each takes a look at the cost model or more: a list without an end shall not keep a program busy for hours.
Status too_many_kernels(const std::string& path, const std::string& what) {
  return Status(Code::kInvalidConfig,
                fmt::format("{} has {}; allowed: at most {} kernels, one for each step of each instance, direction and "
                            "max_seq_len, and another one where it has small_batches",
                            path.empty() ? "the document" : path, what, kMaxConfigKernels));
}

std::vector<Instance> parse_instances(const Json& ops, const std::string& path, const InstanceEntry::Members& defaults,
                                      const fs::path& folder, Mistakes& mistakes) {
  std::vector<Instance> instances;
  if (!ops.is_array() || ops.empty()) {
    mistakes.check(path, value_error(path.empty() ? "the document" : path, ops, kOpsAllowed));
    return instances;
  }
  if (ops.size() > kMaxConfigKernels) {
    mistakes.check(path, too_many_kernels(path, fmt::format("{} instances", ops.size())));
    return instances;
  }
  size_t kernels = 0;
  std::vector<std::string> in_defaults;  // by another name
  for (const std::string& name : entry_field_names("")) {
    if (mistakes.expects(join_path("defaults", name))) in_defaults.push_back(name);
  }
  InstanceReader reader(folder);
  DefaultsToldOnce defaults_told;
  std::set<std::string, std::less<>> taken;
  std::map<std::string, size_t> first_of_name;
  for (size_t index = 0; index < ops.size(); ++index) {
    const std::string own_path = fmt::format("{}[{}]", path, index);
    const InstanceEntry entry(ops[index], defaults);
    Mistakes own;
    for (const std::string& name : in_defaults) own.expect_at(join_path(own_path, name));
    Instance instance = reader.read(entry, own_path, own);
    const auto [known, is_new] = first_of_name.emplace(instance.name, index);
    if (!instance.name.empty() && !is_new) {
      const std::string place = join_path(own_path, "name");
      own.check(place, value_error(place, instance.name,
                                   fmt::format("a name that {}[{}] does not have already", path, known->second)));
    }
    for (const InstanceEntry::Member& member : entry.members()) {
      if (member.inherited && !taken.contains(member.name)) taken.emplace(member.name);
    }
    defaults_told.apply(entry, own_path, own);
    mistakes.add(std::move(own));
    for (const Direction direction : instance.directions) {
      const Program* const program = instance.spec == nullptr ? nullptr : instance.spec->program(direction);
      kernels += (program == nullptr ? 1 : program->steps.size()) * instance.max_seq_lens.size() *
                 (instance.small_batches ? 2 : 1);
    }
    instances.push_back(std::move(instance));
  }
  for (const InstanceEntry::Member& member : defaults) {
    if (taken.contains(member.name)) continue;
    check_default_not_taken(member.name, defaults, reader, mistakes);
    check_default_meant(member, ops, defaults, mistakes);
  }
  if (kernels > kMaxConfigKernels) mistakes.check(path, too_many_kernels(path, fmt::format("{} kernels", kernels)));
  return instances;
}

std::optional<DeviceSpec> parse_device(const Json& json, const fs::path& folder, Mistakes& mistakes) {
  if (json.is_object()) return parse_device_spec(json, "device", mistakes);
  if (!json.is_string()) {
    mistakes.check("device", value_error("device", json,
                                         "an architecture such as \"sm_90a\", a product name such as \"H200\", the "
                                         "name of a DeviceSpec file, or a DeviceSpec"));
    return std::nullopt;
  }
  const std::string& name = json.get_ref<const std::string&>();
  std::error_code error;
  Result<DeviceSpec> device = known_device(name);
  if (!device.ok() && !name.empty() && check_regular_file("read", folder / name).code() != Code::kNotFound)
    return load_foreign_device_spec((folder / name).string(), "device", mistakes);
  if (!device.ok() && device.status().code() == Code::kInvalidConfig && name.find_first_of("./") != std::string::npos &&
      !fs::exists(fs::symlink_status(folder / name, error))) {
    device = Status(Code::kInvalidConfig,
                    fmt::format("{}; there is no {}", device.status().message(), quote((folder / name).string())));
  }
  if (!mistakes.check("device", device.status())) return std::nullopt;
  return *device;
}

Config read_config(const Json& json, const fs::path& folder, Mistakes& mistakes) {
  Config config;
  if (json.is_array()) {
    config.instances = parse_instances(json, "", {}, folder, mistakes);
    return config;
  }
  if (!json.is_object()) {
    mistakes.check(
        "", value_error("the document", json, "an object with version and ops, or a list of operator instances"));
    return config;
  }
  if (!check_names(json, "", {"$schema", "version", "device", "tuning", "defaults", "ops"}, mistakes)) return config;
  if (json.contains("$schema") && !json["$schema"].is_string())
    mistakes.check("$schema", value_error("$schema", json["$schema"], "a text, the schema's address"));
  if (!json.contains("version")) {
    mistakes.miss("version", "1");
  } else if (!json["version"].is_number_integer() || json["version"] != 1) {
    mistakes.check("version", value_error("version", json["version"], "1"));
  }
  if (json.contains("device")) config.device = parse_device(json["device"], folder, mistakes);
  if (json.contains("tuning")) read_fields(json["tuning"], "tuning", config.tuning, mistakes);
  const auto given = json.find("defaults");
  InstanceEntry::Members defaults;
  if (given != json.end() && check_defaults(*given, mistakes)) defaults = InstanceEntry::defaults_of(*given);
  if (json.contains("ops")) {
    config.instances = parse_instances(json["ops"], "ops", defaults, folder, mistakes);
  } else {
    mistakes.miss("ops", kOpsAllowed);
  }
  return config;
}

}  // namespace

Result<const Instance*> Config::find(std::string_view name) const {
  constexpr size_t kNamed = 20;
  std::vector<std::string_view> names;
  for (const Instance& instance : instances) {
    if (instance.name == name) return &instance;
    names.emplace_back(instance.name);
  }
  const size_t slash = std::min(name.find('/'), name.size());
  const bool step = slash < name.size() && std::find(names.begin(), names.end(), name.substr(0, slash)) != names.end();
  const std::string meant = step ? fmt::format(" (a step of {} is no op of its own)", name.substr(0, slash))
                                 : did_you_mean(closest(name, names));
  const size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  return Status(Code::kNotFound,
                fmt::format("op {} is not in the config{}; it has: {}{}", quote(name), meant, fmt::join(names, ", "),
                            more == 0 ? "" : fmt::format(" and {} more", more)));
}

Result<Config> parse_config(std::string_view text, const std::string& origin, const fs::path& folder) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_json_text(text, origin));
  Mistakes mistakes;
  Config config = read_config(json, folder, mistakes);
  if (!mistakes.empty()) return mistakes.status(text, origin);
  return config;
}

Result<std::string> read_config_file(const fs::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(std::string text, read_file(path, kMaxConfigBytes));
  if (const std::string_view other = describe(file_kind(text)); !other.empty())
    return Status(Code::kInvalidConfig, fmt::format("{} is {}; it must be a config", printable(path.native()), other));
  return text;
}

Result<Config> load_config(const fs::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_config_file(path));
  return parse_config(text, path.string(), path.parent_path());
}

}  // namespace hstujit
