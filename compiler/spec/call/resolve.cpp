#include "compiler/spec/call/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "compiler/spec/aliases.h"
#include "compiler/spec/call/resolve_failures.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/step_json.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Names = std::vector<std::string>;

bool is_number(std::string_view size) { return size.find_first_not_of("0123456789") == std::string_view::npos; }

bool is_input(const CallArgument& entry) { return entry.argument.role == ArgumentRole::kInput; }

Status refuse(std::string argument, std::string value, std::string allowed) {
  return Status(Code::kInvalidArgument, ErrorFields{std::move(argument), std::move(value), std::move(allowed), ""});
}

// Reads one call of a function.
class Resolution {
 public:
  Resolution(const CallFunction& function, const GivenCall& given)
      : function_(function), interface_(function.interface), given_(given) {}

  Result<ResolvedCall> resolve() {
    instance_ = step_json(function_.op, {});
    HSTUJIT_RETURN_IF_ERROR(add_keywords());
    HSTUJIT_RETURN_IF_ERROR(add_declared());
    for (const auto& [name, presence] : interface_.presences) add_presence(name, presence);
    for (const auto& [name, forms] : interface_.forms) HSTUJIT_RETURN_IF_ERROR(add_form(name, forms));
    for (const auto& [name, axes] : interface_.sizes) HSTUJIT_RETURN_IF_ERROR(add_size(name, axes));
    for (const auto& [name, arguments] : interface_.dtypes) HSTUJIT_RETURN_IF_ERROR(add_dtype(name, arguments));
    Mistakes mistakes;
    ResolvedCall call;
    call.spec = parse_op_spec(instance_, function_.op, mistakes);
    if (const Status status = mistakes.status(); !status.ok()) return with_origins(status);
    if (!call.spec->supports(function_.direction)) {
      return Status(Code::kUnsupported, fmt::format("direction is \"{}\", but {}", to_string(function_.direction),
                                                    without_direction(*call.spec, function_.direction)));
    }
    call.signature = call.spec->signature(function_.direction);
    call.instance = std::move(instance_);
    find_declared(call.signature);
    HSTUJIT_RETURN_IF_ERROR(check_names(call.signature));
    for (const Argument& argument : call.signature) HSTUJIT_RETURN_IF_ERROR(check_tensor(call.signature, argument));
    return call;
  }

 private:
  // Null of a parameter that must be given.
  Json default_of(const std::string& parameter) const {
    const Json& rules = function_.properties[parameter];
    const auto found = rules.find("default");
    return found == rules.end() ? Json() : *found;
  }

  // A default is left out, as in a config: what another parameter makes of it is not what was asked for.
  Status add_keywords() {
    for (const auto& [name, value] : given_.keywords.items()) {
      if (!is_among(name, interface_.keywords)) return no_argument(function_, name);
      if (value != default_of(name)) instance_[name] = value;
    }
    return {};
  }

  // Takes the tensors that the interface does not have, which a text may declare.
  Status add_declared() {
    const bool declares = !interface_.declares.empty() && instance_.contains(interface_.declares);
    for (const auto& [name, tensor] : given_.tensors) {
      const CallArgument* entry = interface_.find(name);
      if (entry != nullptr && is_input(*entry)) continue;
      if (!declares) return no_argument(function_, name);
      undeclared_.emplace(name, &tensor);
    }
    return {};
  }

  // Finds them among the inputs of the instance, by name or by place.
  void find_declared(const Signature& signature) {
    for (const Argument& argument : signature) {
      if (argument.role == ArgumentRole::kOutput || interface_.find(argument.name) != nullptr) continue;
      const std::string place = fmt::format("{}[{}]", interface_.declares, declared_.size());
      auto given = undeclared_.extract(argument.name);
      if (given.empty()) given = undeclared_.extract(place);
      declared_.emplace_back(argument.name, given.empty() ? nullptr : given.mapped());
    }
  }

  bool is_any_given(const Names& names) const {
    return std::ranges::any_of(names, [&](const std::string& name) { return given_.has(name); });
  }

  void add_presence(const std::string& name, const CallInterface::Presence& presence) {
    const bool usual = default_of(name) == true;
    const bool given = is_any_given(presence.given), left_out = is_any_given(presence.left_out);
    bool value = given || (!left_out && !presence.left_out.empty() && usual);
    if (given && left_out) {
      value = !usual;  // what would not be there by itself was meant
    } else if (presence.given.empty() && !left_out) {
      value = true;  // without what it leaves out there is no other way
    }
    if (value != usual) instance_[name] = value;
  }

  // The form whose constant axes fit, those with fewer symbols first.
  Status add_form(const std::string& name, const std::vector<CallForm>& forms) {
    const auto tensor = given_.tensors.find(name);
    if (tensor == given_.tensors.end()) return {};
    const std::vector<int64_t>& shape = tensor->second.shape;
    std::vector<const CallForm*> sorted;
    for (const CallForm& form : forms) sorted.push_back(&form);
    std::ranges::stable_sort(sorted, {}, [](const CallForm* form) {
      return std::ranges::count_if(form->shape, [](const std::string& size) { return !is_number(size); });
    });
    for (const CallForm* form : sorted) {
      if (form->shape.size() != shape.size()) continue;
      bool fits = true;
      for (size_t axis = 0; axis < shape.size(); ++axis)
        fits = fits && (!is_number(form->shape[axis]) || std::stoll(form->shape[axis]) == shape[axis]);
      if (!fits) continue;
      instance_[name] = form->value;
      return {};
    }
    Names allowed;
    for (const CallForm& form : forms) allowed.push_back(call_shape_text(form.shape));
    return wrong_shape(name, tensor->second, fmt::format("{}", fmt::join(allowed, " or ")));
  }

  bool is_on(const std::string& flag) const {
    const auto found = given_.keywords.find(flag);
    return found != given_.keywords.end() ? *found == true : default_of(flag) == true;
  }
  bool holds(const CallAxis& axis) const {
    return std::ranges::none_of(axis.unless, [&](const std::string& flag) { return is_on(flag); }) &&
           (axis.when.empty() || is_on(axis.when));
  }

  Status add_size(const std::string& name, const std::vector<CallAxis>& axes) {
    const auto axis =
        std::ranges::find_if(axes, [&](const CallAxis& each) { return holds(each) && given_.has(each.argument); });
    if (axis == axes.end()) return {};
    const CallArgument& entry = *interface_.find(axis->argument);
    const GivenTensor& tensor = given_.tensors.find(axis->argument)->second;
    if (tensor.shape.size() != entry.argument.shape.size())
      return wrong_rank(axis->argument, tensor, call_shapes_text(interface_, entry));
    const int64_t size = tensor.shape[static_cast<size_t>(axis->axis)];
    const Json& rules = function_.properties[name];
    const int64_t least = rules["minimum"], most = rules["maximum"];
    if (size < least || size > most) {
      return refuse(fmt::format("{}.shape[{}]", axis->argument, axis->axis), fmt::to_string(size),
                    fmt::format("{}, from {} to {}", name, least, most));
    }
    instance_[name] = size;
    return {};
  }

  Status add_dtype(const std::string& name, const Names& arguments) {
    const auto argument =
        std::ranges::find_if(arguments, [&](const std::string& each) { return given_.tensors.contains(each); });
    if (argument == arguments.end()) return {};
    const GivenTensor& tensor = given_.tensors.find(*argument)->second;
    Names allowed;
    for (const Json& value : function_.properties[name]["enum"]) allowed.push_back(value.get<std::string>());
    if (!is_among(tensor.dtype, allowed)) return wrong_dtype(*argument, tensor, either_of(allowed));
    instance_[name] = tensor.dtype;
    return {};
  }

  // Says of a parameter that is the size of an axis which one that is: callers know tensors alone.
  Status with_origins(const Status& status) const {
    std::string sentence = status.message(), hint;
    for (const auto& [name, axes] : interface_.sizes) {
      const auto axis = std::ranges::find_if(axes, [&](const CallAxis& each) { return holds(each); });
      if (axis == axes.end() || !status.message().starts_with(fmt::format("{}.{} is ", function_.op, name))) continue;
      hint = fmt::format("{} is {}.shape[{}]", name, axis->argument, axis->axis);
      sentence += "; " + hint;
    }
    ErrorFields fields = status.fields() == nullptr ? ErrorFields{} : *status.fields();
    if (!hint.empty()) fields.hint = hint;
    return Status(status.code(), std::move(sentence), std::move(fields));
  }

  // Every argument of the instance is given, and no other but those of deciding().
  Status check_names(const Signature& signature) const {
    const auto deciding = function_.deciding();
    Names wrong, taken;
    for (const CallArgument* entry : interface_.call_order()) {
      const std::string& name = entry->argument.name;
      const bool is_taken = find_argument(signature, name) >= 0;
      if (is_taken) taken.push_back(name);
      if (is_taken && !entry->usual && !given_.has(name)) wrong.push_back(name + " is missing");
    }
    for (const CallArgument* entry : interface_.call_order()) {
      const std::string& name = entry->argument.name;
      if (find_argument(signature, name) < 0 && given_.has(name) && !deciding.contains(name))
        wrong.push_back(name + " is not used");
    }
    for (const auto& [name, tensor] : declared_) {
      taken.push_back(name);
      if (tensor == nullptr) wrong.push_back(name + " is missing");
    }
    for (const auto& [name, tensor] : undeclared_)
      wrong.push_back(fmt::format("{} is not declared in {}", name, interface_.declares));
    if (wrong.empty()) return {};
    const std::string allowed = fmt::format("{}", fmt::join(taken, ", "));
    return Status(
        Code::kInvalidArgument,
        fmt::format("{}: {}; with these parameters it takes {}", function_.name(), fmt::join(wrong, "; "), allowed),
        {wrong.front().substr(0, wrong.front().find(' ')), "", allowed, ""});
  }

  Status check_tensor(const Signature& signature, const Argument& argument) const {
    if (argument.role == ArgumentRole::kOutput || argument.kind != ArgumentKind::kTensor) return {};
    const auto declared = std::ranges::find(declared_, argument.name, &Declared::first);
    const GivenTensor& tensor =
        declared != declared_.end() ? *declared->second : given_.tensors.find(argument.name)->second;
    if (tensor.dtype != to_string(argument.dtype)) {
      std::string wanted(to_string(argument.dtype));
      const int offsets = find_argument(signature, Semantic::kOffsets);
      const bool follows = argument.semantic == Semantic::kOffsets || argument.semantic == Semantic::kCounts;
      if (follows && offsets >= 0 && signature[static_cast<size_t>(offsets)].name != argument.name)
        wanted += ", as " + signature[static_cast<size_t>(offsets)].name;
      return wrong_dtype(argument.name, tensor, wanted);
    }
    if (tensor.shape.size() != argument.shape.size()) return wrong_rank(argument.name, tensor, shape_text(argument));
    return {};
  }

  const CallFunction& function_;
  const CallInterface& interface_;
  const GivenCall& given_;
  Json instance_;
  using Declared = std::pair<std::string, const GivenTensor*>;
  std::vector<Declared> declared_;                                     // null: it is not given
  std::map<std::string, const GivenTensor*, std::less<>> undeclared_;  // that are given
};

// The functions of one operator.
struct OperatorFunctions {
  std::once_flag made;
  Status status;
  std::unique_ptr<const CallFunction> forward, backward;
};

std::unique_ptr<const CallFunction> function_of(std::string_view op, Direction direction, const OperatorCall& call,
                                                const Json& properties) {
  if (!call.of(direction)) return nullptr;
  return std::make_unique<CallFunction>(CallFunction{std::string(op), direction, *call.of(direction), properties});
}

void make_functions(std::string_view op, OperatorFunctions& functions) {
  Result<OperatorCall> call = operator_call(op);
  functions.status = call.status();
  if (!call.ok()) return;
  const Json properties = operator_schema(op)["properties"];
  functions.forward = function_of(op, Direction::kForward, *call, properties);
  functions.backward = function_of(op, Direction::kBackward, *call, properties);
}

}  // namespace

std::set<std::string, std::less<>> CallFunction::deciding() const {
  std::set<std::string, std::less<>> names;
  for (const auto& [name, presence] : interface.presences) {
    if (presence.left_out.empty()) names.insert(presence.given.begin(), presence.given.end());
  }
  for (const auto& [name, presence] : interface.presences) {
    for (const std::string& left_out : presence.left_out) names.erase(left_out);
  }
  return names;
}

Result<const CallFunction*> call_function(std::string_view op, Direction direction) {
  static std::map<std::string_view, OperatorFunctions>& known = *[] {
    auto* made = new std::map<std::string_view, OperatorFunctions>;  // never destroyed: threads may call at exit
    for (const std::string_view name : operator_names()) (*made)[name];
    return made;
  }();
  const auto found = known.find(op);
  if (found == known.end()) {
    const std::vector<std::string_view> names = operator_names();
    const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
    return Status(
        Code::kInvalidArgument,
        fmt::format("op is {}{}; allowed: {}", quote(op), did_you_mean(meant_value("op", op, names)), allowed),
        {"op", quote(op), allowed, ""});
  }
  OperatorFunctions& functions = found->second;
  std::call_once(functions.made, [&] { make_functions(op, functions); });
  HSTUJIT_RETURN_IF_ERROR(functions.status);
  const CallFunction* function = direction == Direction::kForward ? functions.forward.get() : functions.backward.get();
  if (function == nullptr) {
    return Status(
        Code::kUnsupported,
        fmt::format("direction is \"{}\", but {} has no such kernel; allowed: \"forward\"", to_string(direction), op));
  }
  return function;
}

Result<ResolvedCall> resolve_call(const CallFunction& function, const GivenCall& given) {
  return Resolution(function, given).resolve();
}

// Kernels of layers take rows that begin at multiples of 16 bytes, and a row of a bias's gradient has max_seq_len
// elements. Operators with a choice of alignments take dense rows of any size.
int64_t row_elements(const CallFunction& function, const Argument& output) {
  if (output.shape.size() < 2) return 1;
  const auto size = static_cast<int64_t>(size_of(output.dtype));
  int64_t least = output.alignment;
  if (const std::string& alignment = function.interface.alignment; !alignment.empty()) {
    for (const Json& value : function.properties[alignment]["enum"]) least = std::min(least, value.get<int64_t>());
    least = std::max(least, size);
  }
  const int64_t elements = std::min<int64_t>(output.alignment, least) / size;
  const Dimension& last = output.shape.back();
  return elements <= 1 || (last.is_constant() && last.bias % elements == 0) ? 1 : elements;
}

}  // namespace hstujit
