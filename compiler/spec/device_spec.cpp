#include "compiler/spec/device_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/spec/aliases.h"
#include "compiler/spec/fields_json.h"
#include "compiler/support/arch.h"
#include "compiler/support/files.h"
#include "compiler/support/private_json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

struct KnownDevice {
  std::string_view alias;
  DeviceSpec spec;
};

constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;
constexpr int64_t kRegisters = 65536;
// Shared memory a block may use after opting in: what an SM has, less the KiB that the system keeps for each block.
constexpr int64_t kSharedSm80 = 163 * kKiB, kSharedSm86 = 99 * kKiB, kSharedSm90 = 227 * kKiB;

// The first device of an architecture stands for it.
const std::vector<KnownDevice>& devices() {
  static const auto& table = *new std::vector<KnownDevice>{
      {"A100", {"NVIDIA A100-SXM4-80GB", "sm_80", 108, kSharedSm80, kRegisters, 2048, 40 * kMiB}},
      {"A10", {"NVIDIA A10", "sm_86", 72, kSharedSm86, kRegisters, 1536, 6 * kMiB}},
      {"RTX 3090", {"NVIDIA GeForce RTX 3090", "sm_86", 82, kSharedSm86, kRegisters, 1536, 6 * kMiB}},
      {"L40S", {"NVIDIA L40S", "sm_89", 142, kSharedSm86, kRegisters, 1536, 96 * kMiB}},
      {"RTX 4090", {"NVIDIA GeForce RTX 4090", "sm_89", 128, kSharedSm86, kRegisters, 1536, 72 * kMiB}},
      {"H200", {"NVIDIA H200", "sm_90a", 132, kSharedSm90, kRegisters, 2048, 60 * kMiB}},
      {"H100", {"NVIDIA H100 80GB HBM3", "sm_90a", 132, kSharedSm90, kRegisters, 2048, 50 * kMiB}},
      {"H100 PCIe", {"NVIDIA H100 PCIe", "sm_90a", 114, kSharedSm90, kRegisters, 2048, 50 * kMiB}},
      {"H20", {"NVIDIA H20", "sm_90a", 78, kSharedSm90, kRegisters, 2048, 60 * kMiB}},
  };
  return table;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Letters and digits in lower case, word by word.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const unsigned char c : text) {
    const bool part = std::isalnum(c) != 0;
    if (part && !inside) words.emplace_back();
    if (part) words.back() += static_cast<char>(std::tolower(c));
    inside = part;
  }
  return words;
}

std::string joined(std::string_view text) { return fmt::format("{}", fmt::join(words_of(text), "")); }

// The product whose name a text has but for letters at its end: of "L40". A number that was begun may be another one's.
std::string_view product_begun_by(std::string_view text) {
  const std::string begun = joined(text);
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  for (const auto& [alias, spec] : devices()) {
    const std::string whole = joined(alias);
    const auto end = static_cast<std::ptrdiff_t>(std::min(begun.size(), whole.size()));
    if (!std::all_of(begun.begin(), begun.end(), is_letter) && whole.starts_with(begun) &&
        std::all_of(whole.begin() + end, whole.end(), is_letter))
      return alias;
  }
  return {};
}

// The product that a text has among its words, however they are joined: of "RTX4090" and "A100-80GB". The longest of
// several. One that differs in a letter may have another architecture, and is none.
std::string_view product_in(std::string_view text) {
  constexpr size_t kLongest = 64;
  if (text.size() > kLongest) return {};
  const std::vector<std::string> words = words_of(text);
  std::string_view best;
  for (size_t first = 0; first < words.size(); ++first) {
    std::string name;
    for (size_t last = first; last < words.size(); ++last) {
      name += words[last];
      for (const auto& [alias, spec] : devices()) {
        if (name == joined(alias) && alias.size() > best.size()) best = alias;
      }
    }
  }
  return best.empty() ? product_begun_by(text) : best;
}

}  // namespace

int DeviceSpec::capability() const { return arch_number(arch).value_or(-1); }

Json to_json(const DeviceSpec& device) { return fields_to_json(device); }

DeviceSpec parse_device_spec(const Json& json, const std::string& path, Mistakes& mistakes) {
  DeviceSpec device;
  const size_t before = mistakes.count();
  read_fields(json, path, device, mistakes);
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (device.name.size() > kLongestDeviceName || !std::all_of(device.name.begin(), device.name.end(), is_printable)) {
    const std::string place = join_path(path, "name");
    mistakes.check(place, value_error(place, device.name,
                                      fmt::format("at most {} printable characters of ASCII", kLongestDeviceName)));
  }
  constexpr int kHopper = 90;
  if (mistakes.count() == before && device.capability() == kHopper && device.arch != "sm_90a") {
    const std::string place = join_path(path, "arch");
    mistakes.check(
        place, value_error(place, device.arch, "\"sm_90a\" of Hopper, whose instructions its kernels use", "sm_90a"));
  }
  if (mistakes.count() == before && device.capability() < 0) {
    const std::string place = join_path(path, "arch");
    mistakes.check(place, value_error(place, device.arch, "a compute architecture such as \"sm_80\" or \"sm_90a\""));
  }
  return device;
}

Result<DeviceSpec> parse_device_spec(const Json& json, const std::string& path) {
  Mistakes mistakes;
  DeviceSpec device = parse_device_spec(json, path, mistakes);
  if (!mistakes.empty()) return mistakes.first();
  return device;
}

Result<DeviceSpec> known_device(std::string_view name_or_arch, std::string_view field) {
  for (const auto& [alias, spec] : devices()) {
    if (equal_ignoring_case(name_or_arch, alias) || equal_ignoring_case(name_or_arch, spec.name) ||
        name_or_arch == spec.arch) {
      return spec;
    }
  }
  std::vector<std::string_view> allowed;
  for (const auto& [alias, spec] : devices()) {
    if (std::find(allowed.begin(), allowed.end(), spec.arch) == allowed.end()) allowed.push_back(spec.arch);
  }
  const std::string_view arch = meant_value("device", name_or_arch, allowed);
  const std::string meant = did_you_mean(arch.empty() ? product_in(name_or_arch) : arch);
  for (const auto& [alias, spec] : devices()) allowed.push_back(alias);
  return Status(Code::kInvalidConfig,
                fmt::format("{} {} is not known, and there is no DeviceSpec file of that name{}; allowed: {}, or a "
                            "DeviceSpec file (docs/config.md)",
                            field, quote(name_or_arch), meant, fmt::join(allowed, ", ")));
}

std::vector<DeviceSpec> nearest_devices(const DeviceSpec& device) {
  std::vector<DeviceSpec> nearest;
  for (const auto& [alias, spec] : devices()) {
    if (spec.arch == device.arch && spec.name != device.name) nearest.push_back(spec);
  }
  const auto distance = [&](const DeviceSpec& other) { return std::abs(other.sm_count - device.sm_count); };
  std::stable_sort(nearest.begin(), nearest.end(),
                   [&](const DeviceSpec& a, const DeviceSpec& b) { return distance(a) < distance(b); });
  return nearest;
}

namespace {

Result<std::string> read_device_file(const std::string& file, std::string_view field) {
  const Status regular = check_regular_file("read", file);
  Result<std::string> text = regular.ok() ? read_file(file, kMaxDeviceSpecBytes) : Result<std::string>(regular);
  if (text.ok()) return text;
  const Status failure = text.status().with_context(std::string(field));
  return failure.code() == Code::kIo ? Status(Code::kInvalidArgument, failure.message()) : failure;
}

// The sentence of a mistake in `json` without the name or value that stands there.
std::string without_content(const Mistake& mistake, const Json& json) {
  const std::string& sentence = mistake.status.message();
  const auto rest = [&](const std::string& begin) {
    return sentence.starts_with(begin) ? sentence.substr(begin.size()) : "; allowed: the fields of a DeviceSpec";
  };
  if (!json.is_object()) return "it has a wrong value; allowed: a JSON object";
  for (const auto& [name, value] : json.get_ref<const Json::object_t&>()) {
    if (join_path("", name) != mistake.path) continue;
    if (!mistake.named) return fmt::format("{} has a wrong value{}", name, rest(name + " is " + brief_json(value)));
    const std::string shown = printable(mistake.path, kLongestUnknownName);
    return "a name" + rest(fmt::format("{} (value {})", shown, brief_json(value)));
  }
  const std::string missing = mistake.path + " is missing";
  return sentence.starts_with(missing) ? sentence : "a name is not a known field of a DeviceSpec";
}

}  // namespace

std::optional<DeviceSpec> load_foreign_device_spec(const std::string& file, const std::string& path,
                                                   Mistakes& mistakes) {
  const Result<std::string> text = read_device_file(file, path);
  if (!mistakes.check(path, text.status())) return std::nullopt;
  const auto wrong = [&](std::string_view place, std::string_view what) {
    mistakes.add(
        {path, Status(Code::kInvalidConfig, fmt::format("{}: {}:{}: {}", path, printable(file), place, what))});
  };
  const Result<Json> json = parse_private_json(*text, {.comments = true});
  if (!json.ok() && json.status().code() != Code::kInvalidConfig) {
    mistakes.check(path, json.status().with_context(path));
    return std::nullopt;
  }
  if (!json.ok()) {  // "line:column: <what is wrong>"
    const std::string sentence = json.status().message() + "; it must be a DeviceSpec file (docs/config.md)";
    const size_t place = sentence.find(": ");
    wrong(sentence.substr(0, place), sentence.substr(place + 2));
    return std::nullopt;
  }
  Mistakes found;
  DeviceSpec device = parse_device_spec(*json, "", found);
  if (found.empty()) return device;
  std::set<std::string> paths;
  for (const Mistake& mistake : found.kept()) paths.insert(mistake.path);
  const JsonPlaces places(*text, paths);
  std::multimap<size_t, const Mistake*> sorted;  // by where they stand
  for (const Mistake& mistake : found.kept()) {
    const JsonPlace place = places.of(mistake.path);
    sorted.emplace(mistake.named ? place.name : place.value, &mistake);
  }
  for (const auto& [byte, mistake] : sorted) wrong(line_and_column(*text, byte), without_content(*mistake, *json));
  return std::nullopt;
}

Result<DeviceSpec> load_device_spec(const std::string& name_or_file, std::string_view field) {
  Result<DeviceSpec> known = known_device(name_or_file, field);
  if (known.ok() || check_regular_file("read", name_or_file).code() == Code::kNotFound) return known;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_device_file(name_or_file, field));
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_json_text(text, name_or_file));
  Mistakes mistakes;
  DeviceSpec device = parse_device_spec(json, "", mistakes);
  if (!mistakes.empty()) return mistakes.status(text, name_or_file);
  return device;
}

}  // namespace hstujit
