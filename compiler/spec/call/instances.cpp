#include "compiler/spec/call/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hstujit {

namespace {

// Sizes of the first instance: kFew for parameters with a small maximum, such as layers, kMany for others. A parameter
// that may be 0, such as the heads of a bias, has one of kAdded in a variant. No size is 1, because shapes contain 1.
constexpr int64_t kFew[] = {4, 3}, kMany[] = {6, 40, 56, 88, 104}, kAdded[] = {5, 2, 3};
constexpr int64_t kMostOfFew = 64;

bool allows(const Json& rules, int64_t value) { return value >= rules["minimum"] && value <= rules["maximum"]; }

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

// Whether both are sizes of one argument.
bool share_argument(const CallParameter& a, const CallParameter& b) {
  for (const CallParameter::Axes& axes : a.axes) {
    for (const CallParameter::Axes& others : b.axes) {
      if (std::ranges::find_first_of(axes.arguments, others.arguments) != axes.arguments.end()) return true;
    }
  }
  return false;
}

// Adds the arguments that `all` lacks, each before the one that follows it in `signature`.
void add_missing(const Signature& signature, Signature& all) {
  for (size_t i = signature.size(); i-- > 0;) {
    if (find_argument(all, signature[i].name) >= 0) continue;
    const int next = i + 1 < signature.size() ? find_argument(all, signature[i + 1].name) : -1;
    all.insert(next < 0 ? all.end() : all.begin() + next, signature[i]);
  }
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

void CallInstances::add_sizes(const std::string& name) {
  const auto is_taken = [](const auto& sizes, int64_t value) {
    return std::ranges::find(sizes, value, &std::pair<std::string, int64_t>::second) != sizes.end();
  };
  Json changes = Json::object();
  for (const auto& [other, value] : added_sizes_) {
    if (share_argument(*declaration_.find(name), *declaration_.find(other))) changes[other] = value;
  }
  for (const int64_t value : kAdded) {
    if (is_taken(sizes_, value) || is_taken(added_sizes_, value)) continue;
    changes[name] = value;
    OpSpecPtr spec = with(changes);
    if (spec == nullptr) continue;
    variants_.push_back({name, value, std::move(spec)});
    added_sizes_.emplace_back(name, value);
    return;
  }
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
    if (is_optional_size(parameter, rules)) add_sizes(name);
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
    if (!alone || !variant.spec->supports(direction) || variant.spec->signature(direction).size() <= fewest) continue;
    // Sizes may exclude what others add; other parameters go together, or there is no such instance.
    Json more = together;
    more[variant.parameter] = variant.value;
    const bool size = declaration_.find(variant.parameter)->source == CallSource::kSize;
    if (!size || with(more) != nullptr) together = std::move(more);
  }
  return together;
}

std::vector<Signature> CallInstances::signatures(Direction direction) const {
  std::vector<Signature> all;
  const OpSpecPtr most = with(additions(direction));
  if (most != nullptr && most->supports(direction)) {
    all.push_back(most->signature(direction));
    // Parameters that bring arguments may change others, which are shown as they are without those.
    std::vector<Signature> usual = {first_->signature(direction)};
    for (const Variant& variant : variants_) {
      if (variant.spec->supports(direction)) usual.push_back(variant.spec->signature(direction));
    }
    for (Argument& argument : all.front()) {
      const auto has = [&](const Signature& signature) { return find_argument(signature, argument.name) >= 0; };
      const auto shown = std::ranges::find_if(usual, has);
      if (shown == usual.end()) continue;
      const Argument& same = (*shown)[static_cast<size_t>(find_argument(*shown, argument.name))];
      argument.doc = same.doc;
      argument.shape = same.shape;
    }
    for (const Variant& variant : variants_) {
      if (declaration_.find(variant.parameter)->source == CallSource::kSize && variant.spec->supports(direction))
        add_missing(variant.spec->signature(direction), all.front());
    }
  }
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
