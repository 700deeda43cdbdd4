#include "compiler/spec/fields_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler/spec/aliases.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/step_json.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

// A longer name that nobody knows has no place of its own but its object's, since the mistakes of a default are copied
// for each entry that takes it.
constexpr size_t kLongestPlaced = 1000;

Json initial_of(const FieldSlot& slot) { return slot.write(slot.value); }

std::vector<std::string> choices_of(const FieldRules& rules) { return split(rules.choices, ' '); }

bool is_choice(const FieldRules& rules, const std::string& text) {
  const std::vector<std::string> choices = choices_of(rules);
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

// Whether a text that is no choice is looked at as an expression: a word that is none of its names is taken to be
// misspelt.
bool may_be_expression(const FieldRules& rules, const std::string& text) {
  if (rules.expression_names.empty() || text.empty()) return false;
  const bool is_word =
      std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '^'; });
  return !is_word || std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
         is_among(text, split(rules.expression_names, ' '));
}

template <typename Enumeration, typename Parse>
Status read_enumeration(const Json& json, const FieldRules& rules, const std::string& path, Enumeration& value,
                        Parse parse) {
  if (json.is_string() && allowed_by(rules, json)) {
    if (const auto parsed = parse(json.get_ref<const std::string&>())) {
      value = *parsed;
      return {};
    }
  }
  return choice_error(json, rules, path, write_field(value));
}

// By another name than a misspelt "directions".
bool asks_for_backward(std::string_view name, const std::vector<std::string_view>& meant,
                       const std::vector<std::string_view>& allowed) {
  return meant.size() == 1 && meant.front() == "directions" && closest(name, allowed) != "directions";
}

bool has_backward(std::string_view op) {
  const Result<OpSpecPtr> spec = smallest_op_spec(op);
  return !spec.ok() || (*spec)->supports(Direction::kBackward);
}

// Of names that no field of the operator stands for.
bool asks_for_dropout(std::string_view name) { return name == "dropout" || !meant_names(name, {"dropout"}).empty(); }

}  // namespace

Status value_error(const std::string& path, const Json& value, std::string_view allowed, std::string_view meant) {
  return Status(Code::kInvalidConfig,
                fmt::format("{} is {}{}; allowed: {}", path, brief_json(value), did_you_mean(meant), allowed));
}

Status choice_error(const Json& json, const FieldRules& rules, const std::string& path, const Json& example) {
  std::string meant;
  if (json.is_string()) {
    const std::vector<std::string> choices = choices_of(rules);
    const std::vector<std::string_view> allowed(choices.begin(), choices.end());
    meant = meant_value(rules.name, json.get_ref<const std::string&>(), allowed);
  }
  return value_error(path, json, describe_rules(rules, example), meant);
}

bool check_names(const Json& json, const std::string& path, const std::vector<std::string_view>& allowed,
                 Mistakes& mistakes, std::string_view op) {
  if (!json.is_object())
    return mistakes.check(path, value_error(path.empty() ? "the document" : path, json, "a JSON object"));
  const std::string of = op.empty() || op == path ? "" : fmt::format(" of {}", op);
  const bool of_tuner = std::any_of(allowed.begin(), allowed.end(), is_tunable);  // an override, of another template
  for (const auto& [name, value] : json.items()) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    if (mistakes.full()) {
      mistakes.count_one();
      continue;
    }
    std::string hint = "; the tuner chooses it";
    if (!is_tunable(name) || of_tuner) {
      const std::vector<std::string_view> meant = meant_names(name, allowed);
      for (const std::string_view other : meant) mistakes.expect_at(join_path(path, other));
      hint = is_launch_argument(name, allowed) ? "; it is an argument of each launch" : "";
      if (asks_for_backward(name, meant, allowed) && !op.empty() && !has_backward(op)) {
        hint = ", which has no backward";
      } else if (meant.empty() && !op.empty() && asks_for_dropout(name)) {
        hint = ", which has no dropout";
      } else {
        if (!meant.empty()) {
          hint += did_you_mean(meant);
        } else if (hint.empty()) {
          hint = fmt::format("; allowed: {}", fmt::join(allowed, ", "));
        }
      }
    }
    const bool placed = name.size() <= kLongestPlaced;
    const std::string shown = join_path(path, name.substr(0, kLongestPlaced));
    Status status(Code::kInvalidConfig,
                  fmt::format("{} (value {}) is not a known field{}{}", printable(shown, kLongestUnknownName),
                              brief_json(value), of, hint));
    mistakes.add({placed ? shown : path, std::move(status), placed});
  }
  return true;
}

bool allowed_by(const FieldRules& rules, const Json& value) {
  if (value.is_boolean()) return true;
  if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(rules.max)) return false;
    const auto number = value.get<int64_t>();
    if (!rules.choices.empty()) return is_choice(rules, std::to_string(number));
    return number >= rules.min && number <= rules.max;
  }
  if (value.is_number()) {
    const auto number = value.get<double>();
    return number >= static_cast<double>(rules.min) && number <= static_cast<double>(rules.max);
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (rules.choices.empty()) return rules.optional || !text.empty();
  return is_choice(rules, text) || may_be_expression(rules, text);
}

std::string describe_rules(const FieldRules& rules, const Json& example) {
  std::string allowed;
  if (example.is_boolean()) {
    allowed = "true or false";
  } else if (!rules.choices.empty()) {
    allowed = fmt::format("{}", fmt::join(choices_of(rules), ", "));
    if (!rules.expression_names.empty()) allowed += ", or an expression, such as silu(x)";
  } else if (example.is_number()) {
    allowed =
        fmt::format("{} from {} to {}", example.is_number_integer() ? "an integer" : "a number", rules.min, rules.max);
  } else {
    allowed = "a text that is not empty";
  }
  return rules.doc.empty() ? allowed : fmt::format("{} ({})", allowed, rules.doc);
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, int64_t& value) {
  if (!json.is_number_integer() || !allowed_by(rules, json))
    return value_error(path, json, describe_rules(rules, value));
  value = json.get<int64_t>();
  return {};
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, double& value) {
  const bool valid = json.is_number() && std::isfinite(json.get<double>()) && allowed_by(rules, json.get<double>());
  if (!valid) return value_error(path, json, describe_rules(rules, value));
  value = json.get<double>();
  return {};
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, bool& value) {
  if (!json.is_boolean()) return value_error(path, json, describe_rules(rules, value));
  value = json.get<bool>();
  return {};
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, std::string& value) {
  if (!json.is_string() || !allowed_by(rules, json)) return choice_error(json, rules, path, value);
  value = json.get<std::string>();
  return {};
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, DataType& value) {
  return read_enumeration(json, rules, path, value, parse_data_type);
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, MatmulPrecision& value) {
  return read_enumeration(json, rules, path, value, parse_matmul_precision);
}

Json choices_in(const Json& schema) {
  const Json& rules = schema.contains("anyOf") ? schema["anyOf"][0] : schema;
  return rules.is_object() && rules.contains("enum") ? rules["enum"] : Json::array();
}

Json field_schema(const FieldRules& rules, const Json& initial) {
  Json schema = Json::object();
  if (initial.is_boolean()) {
    schema["type"] = "boolean";
  } else if (!rules.choices.empty()) {
    // A text that may be an expression has the choices as one of two kinds.
    if (!rules.expression_names.empty()) {
      schema["type"] = "string";
      schema["anyOf"] = {Json::object(), {{"minLength", 1}}};
    }
    Json& choices = rules.expression_names.empty() ? schema["enum"] : schema["anyOf"][0]["enum"];
    for (const std::string& choice : choices_of(rules))
      choices.push_back(initial.is_number_integer() ? Json(std::stoll(choice)) : Json(choice));
  } else if (initial.is_number()) {
    schema["type"] = initial.is_number_integer() ? "integer" : "number";
    schema["minimum"] = rules.min;
    schema["maximum"] = rules.max;
  } else {
    schema["type"] = "string";
    if (!rules.optional) schema["minLength"] = 1;
  }
  if (!rules.doc.empty()) schema["description"] = std::string(rules.doc);
  if (allowed_by(rules, initial)) schema["default"] = initial;
  return schema;
}

Json write_slots(const FieldSlots& slots) {
  Json json = Json::object();
  for (const FieldSlot& slot : slots) {
    Json value = initial_of(slot);
    const bool none = value == "" || value == false || value == 0;
    if (!slot.rules.optional || !none) json[std::string(slot.rules.name)] = std::move(value);
  }
  return json;
}

Json operator_json_of(std::string_view op, const FieldSlots& params) {
  Json json = step_json(op, {});
  json.update(write_slots(params));
  return json;
}

void read_slots(const Json& json, const std::string& path, const FieldSlots& slots, Mistakes& mistakes,
                const std::vector<std::string_view>& extra) {
  std::vector<std::string_view> names;
  for (const FieldSlot& slot : slots) names.push_back(slot.rules.name);
  names.insert(names.end(), extra.begin(), extra.end());
  if (!check_names(json, path, names, mistakes)) return;
  for (const FieldSlot& slot : slots) {
    const std::string place = join_path(path, slot.rules.name);
    const auto found = json.find(std::string(slot.rules.name));
    if (found != json.end()) {
      mistakes.check(place, slot.read(*found, slot.rules, place, slot.value));
    } else if (const Json initial = initial_of(slot); !allowed_by(slot.rules, initial)) {
      mistakes.miss(place, describe_rules(slot.rules, initial));
    }
  }
}

Json slots_schema(const FieldSlots& defaults) {
  Json properties = Json::object(), required = Json::array();
  for (const FieldSlot& slot : defaults) {
    const Json initial = initial_of(slot);
    properties[std::string(slot.rules.name)] = field_schema(slot.rules, initial);
    if (!allowed_by(slot.rules, initial)) required.push_back(std::string(slot.rules.name));
  }
  return {{"properties", properties}, {"required", required}};
}

}  // namespace hstujit
