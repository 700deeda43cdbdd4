#include "compiler/spec/call/interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/spec/call/instances.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Names = std::vector<std::string>;
using Rows = std::vector<std::pair<std::string, std::string>>;

// All arguments of the signatures, each behind the one that it follows.
Signature merged(const std::vector<Signature>& signatures) {
  Signature all;
  for (const Signature& signature : signatures) {
    size_t place = 0;
    for (const Argument& argument : signature) {
      const int known = find_argument(all, argument.name);
      place = known < 0 ? place : static_cast<size_t>(known);
      if (known < 0) all.insert(all.begin() + static_cast<std::ptrdiff_t>(place), argument);
      ++place;
    }
  }
  return all;
}

// Symbols of outputs that no input tells, and the keywords that do.
Rows untold_rows(const std::vector<Signature>& signatures) {
  Rows rows;
  for (const Signature& signature : signatures) {
    Names told;
    for (const Argument& argument : signature) {
      if (argument.role != ArgumentRole::kInput) continue;
      for (const Dimension& size : argument.shape) {
        if (!size.follows_integer()) told.push_back(size.symbol);
      }
    }
    for (const Argument& output : signature) {
      if (output.role != ArgumentRole::kOutput) continue;
      for (const Dimension& size : output.shape) {
        const bool known = std::ranges::find(rows, size.symbol, &Rows::value_type::first) != rows.end();
        if (size.symbol.empty() || known || is_among(size.symbol, told)) continue;
        rows.emplace_back(size.symbol, output.name + "_rows");
      }
    }
  }
  return rows;
}

class InterfaceBuilder {
 public:
  InterfaceBuilder(const CallInstances& instances, Direction direction)
      : declaration_(instances.declaration()),
        variants_(instances.variants()),
        seen_(instances.signatures(direction)),
        direction_(direction) {
    size_names_ = instances.size_names(seen_);
    add_arguments();
  }

  CallInterface build(const Json& properties) {
    for (const auto& property : properties.items()) add_parameter(property.key());
    interface_.rows = untold_rows(seen_);
    interface_.declares = declaration_.declares();
    return std::move(interface_);
  }

 private:
  void add_arguments() {
    for (const Argument& argument : merged(seen_)) {
      CallArgument entry{argument, shape_of(argument), false, {}, {}, {}};
      entry.optional = std::ranges::any_of(
          seen_, [&](const Signature& signature) { return find_argument(signature, argument.name) < 0; });
      if (const auto usual = declaration_.usual().find(argument.name); usual != declaration_.usual().end())
        entry.usual = usual->second;
      if (direction_ == Direction::kBackward) add_gradient(entry);
      interface_.arguments.push_back(std::move(entry));
    }
  }

  void add_gradient(CallArgument& entry) const {
    const bool input = entry.argument.role == ArgumentRole::kInput;
    for (const std::string& of : input ? declaration_.differentiable() : declaration_.gradients()) {
      if (gradient_name(of) == entry.argument.name) entry.gradient_of = of;
    }
    for (const auto& [name, parameter] : declaration_.parameters()) {
      if (!input && parameter.source == CallSource::kWanted && parameter.of == entry.gradient_of) entry.wanted = name;
    }
  }

  std::vector<std::string> shape_of(const Argument& argument) const {
    std::vector<std::string> shape;
    for (const Dimension& size : argument.shape) {
      const auto named = size_names_.find(size.bias);
      shape.push_back(size.is_constant() && named != size_names_.end() ? named->second : to_string(size));
    }
    return shape;
  }

  // The inputs that the direction has of these, the required ones first.
  Names inputs_of(const Names& names) const {
    Names required, optional;
    for (const CallArgument& entry : interface_.arguments) {
      if (entry.argument.role == ArgumentRole::kInput && is_among(entry.argument.name, names))
        (entry.optional ? optional : required).push_back(entry.argument.name);
    }
    required.insert(required.end(), optional.begin(), optional.end());
    return required;
  }
  bool has_input(const std::string& name) const { return !inputs_of({name}).empty(); }

  void add_parameter(const std::string& name) {
    if (!add_source(name, *declaration_.find(name))) interface_.keywords.push_back(name);
  }

  // False where callers give the value.
  bool add_source(const std::string& name, const CallParameter& parameter) {
    switch (parameter.source) {
      case CallSource::kKeyword:
        return false;
      case CallSource::kSteps:
        return true;
      case CallSource::kWanted:
        return direction_ == Direction::kForward;
      case CallSource::kAlignment:
        interface_.alignment = name;
        return true;
      case CallSource::kSize:
        return add_size(name, parameter);
      case CallSource::kDtype:
        return add_unless_empty(interface_.dtypes, name, inputs_of(parameter.arguments));
      case CallSource::kPresence:
        return add_presence(name, parameter);
      case CallSource::kForm:
        return has_input(name) && add_unless_empty(interface_.forms, name, forms_of(name));
    }
    return false;
  }

  template <typename List>
  static bool add_unless_empty(CallInterface::OfParameters<List>& lists, const std::string& name, List list) {
    if (list.empty()) return false;
    lists.emplace_back(name, std::move(list));
    return true;
  }

  bool add_size(const std::string& name, const CallParameter& parameter) {
    std::vector<CallAxis> axes;
    for (const CallParameter::Axes& group : parameter.axes) {
      for (const std::string& input : inputs_of(group.arguments)) {
        const auto rank = static_cast<int>(interface_.find(input)->argument.shape.size());
        axes.push_back({input, group.axis < 0 ? rank + group.axis : group.axis, group.unless, group.when});
      }
    }
    std::ranges::stable_partition(axes,
                                  [&](const CallAxis& axis) { return !interface_.find(axis.argument)->optional; });
    return add_unless_empty(interface_.sizes, name, std::move(axes));
  }

  // One that leaves something out says so in a direction that has this.
  bool add_presence(const std::string& name, const CallParameter& parameter) {
    CallInterface::Presence presence{inputs_of(parameter.arguments), inputs_of(parameter.left_out)};
    if (parameter.left_out.empty() ? presence.given.empty() : presence.left_out.empty()) return false;
    interface_.presences.emplace_back(name, std::move(presence));
    return true;
  }

  std::vector<CallForm> forms_of(const std::string& name) const {
    std::vector<CallForm> forms;
    for (const CallInstances::Variant& variant : variants_) {
      if (variant.parameter != name) continue;
      const Signature signature = variant.spec->signature(direction_);
      const int index = find_argument(signature, name);
      if (index >= 0)
        forms.push_back({variant.value.get<std::string>(), shape_of(signature[static_cast<size_t>(index)])});
    }
    return forms;
  }

  const CallDeclaration& declaration_;
  const std::vector<CallInstances::Variant>& variants_;
  std::vector<Signature> seen_;
  Direction direction_;
  std::map<int64_t, std::string> size_names_;
  CallInterface interface_;
};

// An argument that need not be given: less stands first.
int place(const CallArgument& entry) {
  if (entry.argument.kind != ArgumentKind::kTensor) return 1;
  return entry.argument.semantic == Semantic::kSeed ? 2 : 0;
}

}  // namespace

std::vector<const CallArgument*> CallInterface::call_order() const {
  std::vector<const CallArgument*> order, others;
  for (const CallArgument& entry : arguments) {
    if (entry.argument.role == ArgumentRole::kInput) (entry.optional || entry.usual ? others : order).push_back(&entry);
  }
  std::ranges::stable_sort(others, {}, [](const CallArgument* entry) { return place(*entry); });
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

const CallArgument* CallInterface::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(arguments, [&](const CallArgument& entry) { return entry.argument.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

Result<OperatorCall> operator_call(std::string_view op) {
  const auto entry = std::ranges::find(call_table(), op, &CallEntry::name);
  OperatorCall call;
  entry->declare(call.declaration);
  const Json schema = operator_schema(op);
  HSTUJIT_ASSIGN_OR_RETURN(const CallInstances instances, CallInstances::make(op, call.declaration, schema));
  call.forward = InterfaceBuilder(instances, Direction::kForward).build(schema["properties"]);
  if (instances.first().supports(Direction::kBackward))
    call.backward = InterfaceBuilder(instances, Direction::kBackward).build(schema["properties"]);
  return call;
}

}  // namespace hstujit
