#include "runtime/engine/nearest_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

// Keys that a cache, a frozen file or a recording holds are anybody's. An object is compared member by member as long
// as it looks like one of this project's: no field of it has more bytes to its name, and no key more fields.
constexpr size_t kLongestName = 64;
constexpr size_t kMostFields = 256;

bool has_plain_members(const Json& value) {
  return value.is_object() && value.size() <= kMostFields &&
         std::ranges::all_of(value.get_ref<const Json::object_t&>(),
                             [](const auto& member) { return member.first.size() <= kLongestName; });
}

// The members of a JSON text as "<name>.<member>", those of objects in it, too; any other text, or object, as one
// field.
void add_members(Fields& fields, const std::string& name, const Json& value) {
  if (fields.size() >= kMostFields || !has_plain_members(value)) {
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

// Both a spec of this library and one of a library with other parameters, which does not parse, have this library's
// defaults where their texts say nothing.
Json full_spec(const std::string& text) {
  Json json = parse_or_text(text);
  if (const Result<OpSpecPtr> spec = parse_op_spec(json, ""); spec.ok()) json = (*spec)->to_json();
  if (!json.is_object() || !json.contains("op") || !json["op"].is_string()) return json;
  const auto op = json["op"].get<std::string>();
  if (!is_operator(op)) return json;
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
  Fields fields = {{"device", key.device},
                   {"arch", key.arch},
                   {"sm_count", key.sm_count},
                   {"bucket", key.bucket},
                   {"small_batch", key.batch_class == BatchClass::kSmall},
                   {"short_sequences", key.batch_class == BatchClass::kShortSequences},
                   {"direction", key.direction}};
  add_members(fields, "spec", full_spec(key.spec));
  fields.emplace_back("deterministic", key.deterministic);
  return fields;
}

// Value of a field that is at `place` in most lists; null where there is none.
const Json& value_of(const Fields& fields, const std::string& name, size_t place) {
  static const auto& nothing = *new Json;
  if (place < fields.size() && fields[place].first == name) return fields[place].second;
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nothing : found->second;
}

// Calls differs(name, wanted, found) for each field that differs, until it gives false.
template <typename Differs>
void compare(const Fields& wanted, const Fields& found, const Differs& differs) {
  static const auto& nothing = *new Json;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& [name, value] = wanted[i];
    if (const Json& other = value_of(found, name, i); other != value && !differs(name, value, other)) return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& [name, value] = found[i];
    if (!value.is_null() && value_of(wanted, name, i).is_null() && !differs(name, nothing, value)) return;
  }
}

std::string op_of(const ArtifactKey& key) {
  const Json spec = parse_or_text(key.spec);
  return spec.is_object() && spec.contains("op") ? dump_json(spec["op"]) : std::string();
}

// How far two keys are from each other: the fields that differ, and those of them beside the generator. Counting ends
// past `most` fields.
std::pair<size_t, size_t> distance(const Fields& wanted, const Fields& found, size_t most) {
  size_t fields = 0, others = 0;
  compare(wanted, found, [&](const std::string& name, const Json&, const Json&) {
    others += name != "generator" ? 1 : 0;
    return ++fields <= most;
  });
  return {fields, others};
}

// "64" "3f0c12ab34cd" "-a, -b": digests in full tell a reader nothing.
std::string value_text(const Json& value) {
  constexpr size_t kLongest = 40;
  if (value.is_null()) return "nothing";
  if (value.is_array()) {
    std::string items;
    for (auto item = value.begin(); item != value.end() && items.size() < kLongestShown; ++item)
      items += (items.empty() ? "" : ", ") + value_text(*item);
    return printable(items);
  }
  const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  const bool digest = text.find_first_not_of("0123456789abcdef") == std::string::npos && text.size() > kLongest;
  return digest ? shown_digest(text) : printable(text);
}

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
  if (differences.size() > shown)
    text += " and " + counted(static_cast<int64_t>(differences.size() - shown), "more field");
  return text;
}

KnownKeys::KnownKeys(const std::vector<StoredArtifact>& entries, CacheLayers layers) : layers_(std::move(layers)) {
  for (const StoredArtifact& entry : entries) {
    const ArtifactKey& key = entry.metadata.key;
    known_[{op_of(key), key.arch}].push_back({fields_of(key), entry.digest, entry.directory});
  }
}

KnownKeys::KnownKeys(const std::vector<StoredRecord>& entries) {
  for (const StoredRecord& entry : entries) {
    const TuningKey& key = entry.record.key;
    known_[group_of(key)].push_back({fields_of(key), entry.digest, entry.directory});
  }
}

KnownKeys::KnownKeys(const std::vector<TuningKey>& keys) : any_arch_(true) {
  for (const TuningKey& key : keys) known_[group_of(key)].push_back({fields_of(key), "", ""});
}

KnownKeys::Group KnownKeys::group_of(const TuningKey& key) const { return {key.op, any_arch_ ? "" : key.arch}; }

std::optional<NearestEntry> KnownKeys::nearest(const ArtifactKey& key) {
  return nearest({op_of(key), key.arch}, fields_of(key));
}

std::optional<NearestEntry> KnownKeys::nearest(const TuningKey& key) { return nearest(group_of(key), fields_of(key)); }

bool KnownKeys::is_good(Known& entry, const std::string& arch) const {
  if (layers_.empty() || entry.good) return true;
  entry.good = std::ranges::any_of(layers_, [&](const CacheLayerPtr& layer) {
    return layer->path() == entry.directory && layer->find_artifact(arch, entry.digest).ok();
  });
  return entry.good;
}

// Lists are in the layers' order, so the first of equals stays.
std::optional<NearestEntry> KnownKeys::nearest(const Group& group, const Fields& wanted) {
  const auto entries = known_.find(group);
  if (entries == known_.end()) return std::nullopt;
  std::vector<Known>& list = entries->second;
  const auto find = [&] {
    auto best = list.end();
    std::pair<size_t, size_t> least = {std::numeric_limits<size_t>::max(), 0};
    for (auto entry = list.begin(); entry != list.end(); ++entry) {
      const std::pair<size_t, size_t> far = distance(wanted, entry->fields, least.first);
      if (far.first == 0 || far >= least) continue;
      best = entry;
      least = far;
    }
    return best;
  };
  auto best = find();
  while (best != list.end() && !is_good(*best, group.second)) {
    list.erase(best);
    best = find();
  }
  if (best == list.end()) return std::nullopt;
  NearestEntry nearest{best->digest, best->directory, {}};
  compare(wanted, best->fields, [&](const std::string& name, const Json& value, const Json& found) {
    nearest.differences.push_back({name, value, found});
    return true;
  });
  return nearest;
}

}  // namespace hstujit
