#include "runtime/engine/nearest_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

// The members of a JSON text as "<name>.<member>", those of objects in it, too; any other text as one field.
void add_members(Fields& fields, const std::string& name, const Json& value) {
  if (!value.is_object()) {
    fields.emplace_back(name, value);
    return;
  }
  for (const auto& [member, inner] : value.items()) {
    add_members(fields, fmt::format("{}.{}", name, member), inner);
  }
}

Json parse_or_text(const std::string& text) {
  Result<Json> json = parse_json(text);
  return json.ok() ? std::move(json).value() : Json(text);
}

// Key texts leave defaults out; a config of a library with other fields is taken as it stands.
Json full_config(const std::string& text) {
  Json json = parse_or_text(text);
  const Result<KernelConfig> config = parse_kernel_config(json);
  return config.ok() ? to_json(*config) : json;
}

// One of a library with other parameters does not parse; it has this library's defaults where it says nothing.
Json full_spec(const std::string& text) {
  Json json = parse_or_text(text);
  if (const Result<OpSpecPtr> spec = parse_op_spec(json, ""); spec.ok()) return (*spec)->to_json();
  if (!json.is_object() || !json.contains("op") || !json["op"].is_string()) return json;
  const auto op = json["op"].get<std::string>();
  const auto names = operator_names();
  if (std::find(names.begin(), names.end(), op) == names.end()) return json;
  const Json schema = operator_schema(op);
  for (const auto& [name, property] : schema["properties"].items()) {
    if (!json.contains(name) && property.contains("default")) json[name] = property["default"];
  }
  return json;
}

Fields fields_of(const ArtifactKey& key) {
  Fields fields = {{"generator", key.generator}, {"direction", key.direction}};
  add_members(fields, "spec", full_spec(key.spec));
  add_members(fields, "config", full_config(key.config));
  fields.emplace_back("options", key.options);
  return fields;
}

Fields fields_of(const TuningKey& key) {
  Fields fields = {{"device", key.device},           {"arch", key.arch},
                   {"sm_count", key.sm_count},       {"bucket", key.bucket},
                   {"small_batch", key.small_batch}, {"direction", key.direction}};
  add_members(fields, "spec", full_spec(key.spec));
  fields.emplace_back("deterministic", key.deterministic);
  return fields;
}

const Json& value_of(const Fields& fields, const std::string& name) {
  static const auto& nothing = *new Json;
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nothing : found->second;
}

std::vector<KeyDifference> differences_of(const Fields& wanted, const Fields& found) {
  std::vector<KeyDifference> differences;
  for (const auto& [name, value] : wanted) {
    if (const Json& other = value_of(found, name); other != value) differences.push_back({name, value, other});
  }
  for (const auto& [name, value] : found) {
    if (!value.is_null() && value_of(wanted, name).is_null()) differences.push_back({name, nullptr, value});
  }
  return differences;
}

std::string op_of(const ArtifactKey& key) {
  const Json spec = parse_or_text(key.spec);
  return spec.is_object() && spec.contains("op") ? dump_json(spec["op"]) : std::string();
}

// Lists are in the layers' order, so the first of equals stays.
std::pair<size_t, size_t> rank(const std::vector<KeyDifference>& differences) {
  const auto others = std::count_if(differences.begin(), differences.end(),
                                    [](const KeyDifference& difference) { return difference.field != "generator"; });
  return {differences.size(), static_cast<size_t>(others)};
}

// "64" "3f0c12ab34cd" "-a, -b": digests in full tell a reader nothing.
std::string value_text(const Json& value) {
  constexpr size_t kLongest = 40, kDigits = 12;
  if (value.is_null()) return "nothing";
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(value_text(item));
    return fmt::format("{}", fmt::join(items, ", "));
  }
  const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  const bool digest = text.find_first_not_of("0123456789abcdef") == std::string::npos && text.size() > kLongest;
  return digest ? text.substr(0, kDigits) : printable(text);
}

class Nearest {
 public:
  explicit Nearest(Fields wanted) : wanted_(std::move(wanted)) {}

  void consider(const Fields& found, const std::string& digest, const std::string& directory) {
    std::vector<KeyDifference> differences = differences_of(wanted_, found);
    if (differences.empty() || (best_ && rank(best_->differences) <= rank(differences))) return;
    best_ = NearestEntry{digest, directory, std::move(differences)};
  }
  std::optional<NearestEntry> take() { return std::move(best_); }

 private:
  Fields wanted_;
  std::optional<NearestEntry> best_;
};

}  // namespace

Json NearestEntry::to_json() const {
  Json differs = Json::array();
  for (const KeyDifference& difference : differences) {
    differs.push_back({{"field", difference.field}, {"found", difference.found}, {"wanted", difference.wanted}});
  }
  return {{"digest", digest}, {"directory", directory}, {"differs", std::move(differs)}, {"sentence", sentence()}};
}

std::string NearestEntry::sentence() const {
  constexpr size_t kShown = 6;  // differing fields: past that it is another kernel altogether
  const size_t shown = std::min(differences.size(), kShown);
  std::string text = "differs in ";
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == differences.size() ? " and " : ", ";
    const KeyDifference& difference = differences[i];
    text += fmt::format("{} ({}, not {})", printable(difference.field), value_text(difference.found),
                        value_text(difference.wanted));
  }
  if (differences.size() > shown) text += fmt::format(" and {} more fields", differences.size() - shown);
  return text;
}

std::optional<NearestEntry> nearest_entry(const ArtifactKey& key, const std::vector<StoredArtifact>& entries) {
  Nearest nearest(fields_of(key));
  const std::string op = op_of(key);
  for (const StoredArtifact& entry : entries) {
    const ArtifactKey& other = entry.metadata.key;
    if (other.arch == key.arch && op_of(other) == op) nearest.consider(fields_of(other), entry.digest, entry.directory);
  }
  return nearest.take();
}

std::optional<NearestEntry> nearest_entry(const TuningKey& key, const std::vector<StoredRecord>& entries) {
  Nearest nearest(fields_of(key));
  for (const StoredRecord& entry : entries) {
    const TuningKey& other = entry.record.key;
    if (other.op == key.op && other.arch == key.arch) {
      nearest.consider(fields_of(other), entry.digest, entry.directory);
    }
  }
  return nearest.take();
}

std::optional<NearestEntry> nearest_entry(const TuningKey& key, const std::vector<TuningKey>& entries) {
  Nearest nearest(fields_of(key));
  for (const TuningKey& other : entries) {
    if (other.op == key.op) nearest.consider(fields_of(other), "", "");
  }
  return nearest.take();
}

}  // namespace hstujit
