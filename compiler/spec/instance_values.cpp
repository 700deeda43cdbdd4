#include "compiler/spec/instance_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/spec/aliases.h"
#include "compiler/spec/config.h"
#include "compiler/spec/instance_rules.h"
#include "compiler/support/read_limits.h"

namespace hstujit {

namespace {

Result<Direction> parse_direction_of(const Json& json, const std::string& path, const OpSpec* spec) {
  constexpr Direction kAll[] = {Direction::kForward, Direction::kBackward};
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  const auto direction = parse_direction(text);
  if (!direction) {
    const std::string_view meant = meant_value("directions", text, {to_string(kAll[0]), to_string(kAll[1])});
    return value_error(path, json, "\"forward\" or \"backward\"", meant);
  }
  if (spec == nullptr || spec->supports(*direction)) return *direction;
  return Status(Code::kInvalidConfig,
                fmt::format("{} is {}, but {}", path, brief_json(json), without_direction(*spec, *direction)));
}

}  // namespace

std::string parse_name(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes) {
  const std::string allowed =
      fmt::format("letters, digits, '_', '-' and '.', at most {}, and at least one of them no '.'", kLongestName);
  const std::string place = join_path(path, "name");
  const Json* const given = entry.find("name");
  if (given == nullptr) {
    mistakes.miss(place, allowed);
    return {};
  }
  const Json& name = *given;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  std::string text = name.is_string() ? name.get<std::string>() : "";
  // Names become names of folders, of which "." and ".." are others.
  const bool dots = text.find_first_not_of('.') == std::string::npos;
  if (dots || text.size() > kLongestName || !std::all_of(text.begin(), text.end(), plain)) {
    mistakes.check(place, value_error(place, name, allowed));
    return {};
  }
  return text;
}

std::vector<Direction> parse_directions(const Json& json, const std::string& path, const OpSpec* spec,
                                        Mistakes& mistakes) {
  std::vector<Direction> directions;
  constexpr size_t kDirections = 2;
  if (!json.is_array() || json.empty() || json.size() > kDirections) {
    mistakes.check(path, value_error(path, json, "a list of \"forward\", \"backward\" or both"));
    return directions;
  }
  for (size_t index = 0; index < json.size(); ++index) {
    const std::string place = fmt::format("{}[{}]", path, index);
    const Result<Direction> direction = parse_direction_of(json[index], place, spec);
    if (!mistakes.check(place, direction.status())) continue;
    if (std::find(directions.begin(), directions.end(), *direction) != directions.end())
      mistakes.check(place, value_error(place, json[index], "a direction that the list does not have already"));
    directions.push_back(*direction);
  }
  return directions;
}

std::vector<int64_t> parse_integers(const Json& json, const std::string& path, const FieldRules& rules,
                                    Mistakes& mistakes) {
  std::vector<int64_t> values(1);
  if (!json.is_array()) {
    mistakes.check(path, read_field(json, rules, path, values[0]));
    return values;
  }
  if (json.empty()) {
    mistakes.check(path, value_error(path, json, "a list of at least one " + std::string(rules.name)));
    return values;
  }
  values.resize(json.size());
  for (size_t index = 0; index < json.size(); ++index) {
    // There may be millions of them: a place is written down for a mistake only.
    if (json[index].is_number_integer() && allowed_by(rules, json[index])) {
      values[index] = json[index].get<int64_t>();
      continue;
    }
    if (mistakes.full()) {
      mistakes.count_one();
      continue;
    }
    const std::string place = fmt::format("{}[{}]", path, index);
    mistakes.check(place, read_field(json[index], rules, place, values[index]));
  }
  return values;
}

SharedIntegers parse_max_seq_lens(const Json& json, const std::string& path, Mistakes& mistakes) {
  if (const size_t count = json.size(); count > kMaxConfigKernels) {
    mistakes.check(path, Status(Code::kInvalidConfig,
                                fmt::format("{} has {} entries; allowed: at most {}", path, count, kMaxConfigKernels)));
    return {};
  }
  std::vector<int64_t> lengths = parse_integers(json, path, kMaxSeqLenRules, mistakes);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

void take_count(Json& parameters, std::string_view field, const std::string& path, int64_t usual, int64_t& count,
                Mistakes& mistakes) {
  const auto value = parameters.find(field);
  if (value == parameters.end()) return;
  if (value->is_boolean()) {
    count = *value == true ? usual : 0;
    return;
  }
  if (value->is_number_integer() && allowed_by(kCountRules, *value)) {
    count = value->get<int64_t>();
    *value = count > 0;
    return;
  }
  const std::string place = join_path(path, field);
  mistakes.check(place, value_error(place, *value,
                                    fmt::format("true, false, or how many of them generated inputs have, an integer "
                                                "from {} to {}",
                                                kCountRules.min, kCountRules.max)));
  *value = true;  // whoever wrote that wants some: what goes with them is no mistake besides
}

double parse_alpha(const InstanceEntry& entry, const std::string& path, const OpSpec* spec, Mistakes& mistakes) {
  if (const Json* const alpha = entry.find("alpha")) {
    const std::string place = join_path(path, "alpha");
    const bool fits = alpha->is_number() && std::abs(alpha->get<double>()) <= std::numeric_limits<float>::max();
    if (fits) return alpha->get<double>();
    mistakes.check(place, value_error(place, *alpha, "a finite number of fp32"));
  }
  const Json parameters = spec == nullptr ? Json::object() : spec->to_json();
  return parameters.contains("attn_dim") ? 1.0 / parameters["attn_dim"].get<double>() : 1.0;
}

}  // namespace hstujit
