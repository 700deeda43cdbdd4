#include "compiler/spec/call/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hstujit {

namespace {

// Sizes of the first instance: kFew for parameters with a small maximum, such as layers, kMany for others. A parameter
// that may be 0, such as the heads of a bias, has the size kAdded in a variant. No size is 1, because shapes contain 1.
constexpr int64_t kFew[] = {4, 3}, kMany[] = {6, 40, 56, 88, 104}, kAdded[] = {2};
constexpr int64_t kMostOfFew = 64;

bool allows(const Json& rules, int64_t value) {
  return value >= rules["minimum"] && value <= rules["maximum"] &&
         (!rules.contains("multipleOf") || value % rules["multipleOf"].get<int64_t>() == 0);
}

// The values of a parameter besides its default that calls tell apart.
std::vector<Json> other_values(const Json& rules) {
  std::vector<Json> values;
  if (rules.value("type", "") == "boolean") return {!rules["default"].get<bool>()};
  if (rules.value("type", "") == "integer") return {rules["minimum"]};
  for (const Json& value : rules.value("enum", Json::array())) {
    if (value != rules["default"]) values.push_back(value);
  }
  return values;
}

bool is_optional_size(const CallParameter& parameter, const Json& rules) {
  return parameter.source == CallSource::kSize && rules.value("default", Json()) == 0;
}

}  // namespace

Result<CallInstances> CallInstances::make(std::string_view op, CallDeclaration declaration, const Json& schema) {
  CallInstances instances(op, std::move(declaration));
  const Json& properties = schema["properties"];
  const auto misfit = [&](std::string_view parameter, std::string_view what) {
    return Status(Code::kInternal,
                  fmt::format("compiler/spec/operators/{}/call.cpp {} the parameter {}", op, what, parameter));
  };
  for (const auto& property : properties.items()) {
    if (instances.declaration_.find(property.key()) == nullptr) return misfit(property.key(), "does not declare");
  }
  for (const auto& [name, parameter] : instances.declaration_.parameters()) {
    if (!properties.contains(name)) return misfit(name, "declares what the operator does not have,");
  }
  HSTUJIT_RETURN_IF_ERROR(instances.choose_sizes(schema));
  instances.add_variants(properties);
  return instances;
}

Status CallInstances::choose_sizes(const Json& schema) {
  for (const auto& [name, rules] : schema["properties"].items()) {
    const CallParameter& parameter = *declaration_.find(name);
    if (parameter.source != CallSource::kSize || is_optional_size(parameter, rules)) continue;
    const bool few = rules["maximum"] <= kMostOfFew;
    const std::vector<int64_t> tried = few ? std::vector<int64_t>(std::begin(kFew), std::end(kFew))
                                           : std::vector<int64_t>(std::begin(kMany), std::end(kMany));
    const auto found = std::ranges::find_if(tried, [&](int64_t value) {
      const bool taken = std::ranges::find(sizes_, value, &std::pair<std::string, int64_t>::second) != sizes_.end();
      return !taken && allows(rules, value);
    });
    if (found == tried.end()) return Status(Code::kInternal, fmt::format("no size is left for {}", name));
    json_[name] = *found;
    sizes_.emplace_back(name, *found);
  }
  HSTUJIT_ASSIGN_OR_RETURN(first_, parse_op_spec(json_, json_["op"].get<std::string>()));
  return {};
}

void CallInstances::add_variants(const Json& properties) {
  const auto add = [&](const std::string& name, const Json& value) {
    Json changes = {{name, value}};
    if (const std::string& flag = declaration_.find(name)->beside; !flag.empty()) changes[flag] = true;
    OpSpecPtr spec = with(changes);
    if (spec != nullptr) variants_.push_back({name, value, std::move(spec)});
  };
  for (const auto& [name, rules] : properties.items()) {
    const CallParameter& parameter = *declaration_.find(name);
    if (is_optional_size(parameter, rules)) {
      for (const int64_t value : kAdded) {
        add(name, value);
        added_sizes_.emplace_back(name, value);
      }
    }
    // Alone, a gradient that is not wanted changes nothing.
    if (!parameter.shapes || parameter.source == CallSource::kWanted) continue;
    for (const Json& value : other_values(rules)) add(name, value);
  }
}

OpSpecPtr CallInstances::with(const Json& changes) const {
  Json json = json_;
  json.update(changes);
  const Result<OpSpecPtr> spec = parse_op_spec(json, json["op"].get<std::string>());
  return spec.ok() ? *spec : nullptr;
}

Json CallInstances::additions(Direction direction) const {
  const size_t fewest = first_->signature(direction).size();
  Json together = Json::object();
  for (const Variant& variant : variants_) {
    const bool alone = declaration_.find(variant.parameter)->beside.empty() && !together.contains(variant.parameter);
    if (alone && variant.spec->supports(direction) && variant.spec->signature(direction).size() > fewest)
      together[variant.parameter] = variant.value;
  }
  return together;
}

std::vector<Signature> CallInstances::signatures(Direction direction) const {
  std::vector<Signature> all;
  const OpSpecPtr most = with(additions(direction));
  if (most != nullptr && most->supports(direction)) all.push_back(most->signature(direction));
  all.push_back(first_->signature(direction));
  for (const Variant& variant : variants_) {
    if (variant.spec->supports(direction)) all.push_back(variant.spec->signature(direction));
  }
  return all;
}

std::map<int64_t, std::string> CallInstances::size_names(const std::vector<Signature>& signatures) const {
  std::map<int64_t, std::string> names;
  for (const auto& [name, size] : sizes_) names.emplace(size, name);
  for (const auto& [name, size] : added_sizes_) names.emplace(size, name);
  for (const auto& [first, a] : sizes_) {
    for (const auto& [second, b] : sizes_) {
      if (&first < &second) names.emplace(a * b, first + "*" + second);
    }
  }
  for (const CallDeclaration::Letter& letter : declaration_.letters()) {
    for (const Signature& signature : signatures) {
      const int index = find_argument(signature, letter.argument);
      if (index < 0) continue;
      const std::vector<Dimension>& shape = signature[static_cast<size_t>(index)].shape;
      const auto axis = letter.axis < 0 ? shape.end() + letter.axis : shape.begin() + letter.axis;
      names.emplace(axis->bias, letter.letter);
    }
  }
  const std::map<int64_t, std::string> factors = names;
  for (const auto& [name, size] : sizes_) {
    for (const auto& [factor, text] : factors) names.emplace(size * factor, name + "*" + text);
  }
  return names;
}

}  // namespace hstujit
