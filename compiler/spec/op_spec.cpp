#include "compiler/spec/op_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "compiler/spec/aliases.h"
#include "compiler/spec/fields_json.h"
#include "compiler/spec/operator_table.h"
#include "compiler/spec/step_json.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

const OperatorEntry* find_operator(std::string_view name) {
  const auto& table = operator_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const OperatorEntry& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

OpSpecPtr parse_op_spec(const Json& json, const std::string& path, Mistakes& mistakes) {
  if (!json.is_object()) {
    mistakes.check(path, value_error(path.empty() ? "the operator" : path, json, "a JSON object with \"op\""));
    return nullptr;
  }
  const std::string place = join_path(path, "op");
  const auto op = json.find("op");
  if (op == json.end()) {
    mistakes.miss(place, fmt::format("{}", fmt::join(operator_names(), ", ")));
    return nullptr;
  }
  const OperatorEntry* entry = op->is_string() ? find_operator(op->get_ref<const std::string&>()) : nullptr;
  if (entry == nullptr) {
    mistakes.check(place, unknown_operator(place, *op));
    return nullptr;
  }
  return entry->parse(json, path, mistakes);
}

Result<OpSpecPtr> parse_op_spec(const Json& json, const std::string& path) {
  Mistakes mistakes;
  OpSpecPtr spec = parse_op_spec(json, path, mistakes);
  if (!mistakes.empty()) return mistakes.first();
  return spec;
}

std::string key_text(const OpSpec& spec) {
  static const auto* const schemas = [] {
    auto* const of_all = new std::map<std::string_view, Json>;
    for (const OperatorEntry& entry : operator_table()) of_all->emplace(entry.name, entry.schema());
    return of_all;
  }();
  const Json& properties = schemas->at(spec.op()).at("properties");
  const Json all = spec.to_json();
  Json text = Json::object();
  for (const auto& [name, value] : all.items()) {
    const auto property = properties.find(name);
    const bool usual = property != properties.end() && property->contains("default") && (*property)["default"] == value;
    if (!usual) text[name] = value;
  }
  return dump_json(text);
}

std::string without_direction(const OpSpec& spec, Direction direction) {
  std::vector<std::string> allowed;
  for (const Direction there : {Direction::kForward, Direction::kBackward}) {
    if (spec.supports(there)) allowed.push_back(quote(to_string(there)));
  }
  std::vector<std::string> with;  // what rules it out
  const Json properties = operator_schema(spec.op())["properties"], all = spec.to_json();
  if (const auto limit = spec.limit_of(direction)) {
    with.push_back(fmt::format("{}={}", limit->parameter, brief_json(all[limit->parameter])));
    allowed.push_back(fmt::format("{} up to {}", limit->parameter, limit->most));
  }
  for (const auto& [name, value] : all.items()) {
    const auto rules = properties.find(name);
    if (rules == properties.end() || !rules->contains("default") || (*rules)["default"] == value) continue;
    Json usual = all;
    usual[name] = (*rules)["default"];
    const Result<OpSpecPtr> other = parse_op_spec(usual, std::string(spec.op()));
    if (!other.ok() || !(*other)->supports(direction)) continue;
    with.push_back(fmt::format("{}={}", name, brief_json(value)));
    allowed.push_back(fmt::format("{}={}", name, brief_json((*rules)["default"])));
    break;
  }
  if (!with.empty() && allowed.size() > 1) allowed.back() = "or " + allowed.back();
  return fmt::format("{}{}{} has no {} kernel; allowed: {}", spec.op(), with.empty() ? "" : " with ",
                     fmt::join(with, " and "), to_string(direction), fmt::join(allowed, ", "));
}

std::vector<std::string_view> operator_names() {
  std::vector<std::string_view> names;
  for (const auto& entry : operator_table()) names.push_back(entry.name);
  return names;
}

bool is_operator(std::string_view name) { return find_operator(name) != nullptr; }

Status unknown_operator(const std::string& place, const Json& value) {
  const auto names = operator_names();
  const std::string_view meant =
      value.is_string() ? meant_value("op", value.get_ref<const std::string&>(), names) : std::string_view();
  return value_error(place, value, fmt::format("{}", fmt::join(names, ", ")), meant);
}

Json operator_schema(std::string_view op) { return find_operator(op)->schema(); }

Result<OpSpecPtr> smallest_op_spec(std::string_view op) {
  Json instance = step_json(op, {});
  const Json schema = operator_schema(op);
  for (const Json& required : schema["required"]) {
    const auto& name = required.get_ref<const std::string&>();
    const Json& property = schema["properties"][name];
    if (property.contains("minimum")) instance[name] = property["minimum"];
  }
  return parse_op_spec(instance, std::string(op));
}

}  // namespace hstujit
