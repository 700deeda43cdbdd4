// Compares call declarations with the signatures of random instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "compiler/spec/call/instances.h"
#include "compiler/spec/call/interface.h"
#include "compiler/spec/call/output_sizes.h"
#include "compiler/spec/call/resolve.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

struct DrawnInstance {
  OpSpecPtr spec;
  Json values;  // of all parameters, in their canonical form
};

// Random values of an operator's parameters.
class InstanceDraw {
 public:
  explicit InstanceDraw(std::string_view op)
      : op_(op), schema_(operator_schema(op)), random_(std::hash<std::string_view>{}(op)) {}

  // Null where the values do not go together.
  OpSpecPtr spec(const Json& json) const {
    const Result<OpSpecPtr> spec = parse_op_spec(json, op_);
    return spec.ok() ? *spec : nullptr;
  }
  Json json() {
    Json json = {{"op", op_}};
    for (const auto& [name, rules] : schema_["properties"].items()) {
      const bool required = !rules.contains("default");
      // Operands are declared in calls of operands_call_test.cpp.
      if (name != "adds_gradients" && name != "operands" && (required || below(3) == 0)) json[name] = value(rules);
    }
    return json;
  }
  Json value(const Json& rules) {
    if (rules.value("type", "") == "boolean") return below(2) == 0;
    if (rules.contains("enum"))
      return rules["enum"][static_cast<size_t>(below(static_cast<int64_t>(rules["enum"].size())))];
    if (rules.value("type", "") == "string") return below(2) == 0 ? "" : "col < row + 7";  // a mask
    const int64_t least = rules["minimum"], most = rules["maximum"];
    return std::min(most, least + below(5));
  }
  int64_t below(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }

  // Instances that there are, and the parameters that they were made from.
  std::vector<DrawnInstance> instances(size_t count) {
    std::vector<DrawnInstance> found;
    for (int trial = 0; trial < 20000 && found.size() < count; ++trial) {
      OpSpecPtr drawn = spec(json());
      if (drawn == nullptr) continue;
      Json values = drawn->to_json();
      for (const auto& [name, rules] : schema_["properties"].items()) {
        if (!values.contains(name)) values[name] = rules["default"];
      }
      found.push_back({std::move(drawn), std::move(values)});
    }
    return found;
  }
  const Json& properties() const { return schema_["properties"]; }

 private:
  std::string op_;
  Json schema_;
  std::mt19937_64 random_;
};

class Call : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    auto made = operator_call(GetParam());
    ASSERT_TRUE(made.ok()) << made.status().message();
    call_ = *std::move(made);
    instances_ = draw_.instances(40);
    ASSERT_GE(instances_.size(), GetParam() == "complete_cumsum" ? 2 : 20);
  }

  // The direction that for_each_signature() visits.
  mutable Direction direction_ = Direction::kForward;

  // Calls visit(instance, interface, signature) for each instance and direction.
  template <typename Visit>
  void for_each_signature(Visit visit) const {
    for (const Direction direction : kDirections) {
      direction_ = direction;
      for (const DrawnInstance& instance : instances_) {
        if (!instance.spec->supports(direction)) continue;
        ASSERT_TRUE(call_.of(direction).has_value());
        SCOPED_TRACE(std::string(to_string(direction)) + " " + instance.values.dump());
        visit(instance, *call_.of(direction), instance.spec->signature(direction));
      }
    }
  }

  static const Argument* find(const Signature& signature, std::string_view name) {
    const int index = find_argument(signature, name);
    return index < 0 ? nullptr : &signature[static_cast<size_t>(index)];
  }
  bool is_usual(const DrawnInstance& instance, const std::string& parameter) const {
    return instance.values[parameter] == draw_.properties()[parameter]["default"];
  }
  static bool holds(const CallAxis& axis, const Json& values) {
    const auto is_on = [&](const std::string& flag) { return values[flag] == true; };
    return std::ranges::none_of(axis.unless, is_on) && (axis.when.empty() || is_on(axis.when));
  }

  mutable InstanceDraw draw_{GetParam()};
  OperatorCall call_;
  std::vector<DrawnInstance> instances_;
};

TEST_P(Call, ArgumentsAreThoseOfInstances) {
  for_each_signature([&](const DrawnInstance&, const CallInterface& call, const Signature& signature) {
    for (const Argument& argument : signature) {
      const CallArgument* entry = call.find(argument.name);
      ASSERT_NE(entry, nullptr) << argument.name;
      EXPECT_EQ(entry->argument.role, argument.role) << argument.name;
      EXPECT_EQ(entry->argument.kind, argument.kind) << argument.name;
    }
    for (const CallArgument& entry : call.arguments)
      EXPECT_TRUE(entry.optional || find(signature, entry.argument.name) != nullptr) << entry.argument.name;
  });
}

TEST_P(Call, SizesAreThoseOfAxes) {
  // By keyword that is an integer, and direction: the axes that had its value in every instance.
  std::map<std::string, std::set<std::pair<std::string, size_t>>> alike;
  std::map<std::string, std::set<int64_t>> seen;
  for_each_signature([&](const DrawnInstance& instance, const CallInterface& call, const Signature& signature) {
    for (const auto& [parameter, axes] : call.sizes) {
      const int64_t value = instance.values[parameter];
      bool told = draw_.properties()[parameter].value("default", Json()) == 0;
      for (const CallAxis& axis : axes) {
        const Argument* argument = find(signature, axis.argument);
        if (argument == nullptr || !holds(axis, instance.values)) continue;
        ASSERT_LT(static_cast<size_t>(axis.axis), argument->shape.size());
        EXPECT_EQ(argument->shape[static_cast<size_t>(axis.axis)], Dimension::constant(value))
            << parameter << " of " << axis.argument;
        told = told || !call.find(axis.argument)->optional;
      }
      EXPECT_TRUE(told) << "no required input says " << parameter;
    }
    for (const std::string& keyword : call.keywords) {
      if (!instance.values[keyword].is_number_integer()) continue;
      std::set<std::pair<std::string, size_t>> here;
      for (const Argument& argument : signature) {
        for (size_t axis = 0; argument.role == ArgumentRole::kInput && axis < argument.shape.size(); ++axis) {
          if (argument.shape[axis] == Dimension::constant(instance.values[keyword])) here.emplace(argument.name, axis);
        }
      }
      const std::string key = keyword + (&call == &*call_.forward ? "" : " backward");
      if (seen[key].insert(instance.values[keyword].get<int64_t>()); !alike.contains(key)) alike[key] = here;
      std::erase_if(alike[key], [&](const auto& axis) { return !here.contains(axis); });
    }
  });
  for (const auto& [keyword, axes] : alike) {
    EXPECT_TRUE(axes.empty() || seen[keyword].size() < 2)
        << keyword << " is the size of an axis of " << axes.begin()->first;
  }
}

TEST_P(Call, DataTypesAreThoseOfArguments) {
  std::map<std::string, std::set<DataType>> others;
  for_each_signature([&](const DrawnInstance& instance, const CallInterface& call, const Signature& signature) {
    std::set<std::string> known;
    for (const auto& [parameter, arguments] : call.dtypes) {
      for (const std::string& name : arguments) {
        known.insert(name);
        if (const Argument* argument = find(signature, name)) {
          EXPECT_EQ(to_string(argument->dtype), instance.values[parameter].get<std::string>()) << name;
        }
      }
    }
    for (const Argument& argument : signature) {
      const bool tensor = argument.kind == ArgumentKind::kTensor && argument.role == ArgumentRole::kInput;
      if (tensor && !known.contains(argument.name)) others[argument.name].insert(argument.dtype);
    }
  });
  for (const auto& [name, types] : others) EXPECT_EQ(types.size(), 1) << name;
}

// An input is there exactly if everything that is said of it holds; keywords may leave out some besides.
TEST_P(Call, InputsAreThereWhereParametersSaySo) {
  for_each_signature([&](const DrawnInstance& instance, const CallInterface& call, const Signature& signature) {
    const bool usual = std::ranges::all_of(draw_.properties().items(), [&](const auto& property) {
      const CallParameter& declared = *call_.declaration.find(property.key());
      const bool keyword = std::ranges::find(call.keywords, property.key()) != call.keywords.end();
      if (!declared.shapes || (declared.source != CallSource::kSize && !keyword)) return true;
      const Json& rules = property.value();
      return keyword ? is_usual(instance, property.key()) : instance.values[property.key()] != rules["minimum"];
    });
    std::map<std::string, bool> wanted;
    const auto say = [&](const std::string& name, bool there) {
      wanted[name] = there && (!wanted.contains(name) || wanted[name]);
    };
    for (const auto& [parameter, presence] : call.presences) {
      for (const std::string& name : presence.given) say(name, instance.values[parameter] == true);
      for (const std::string& name : presence.left_out) say(name, instance.values[parameter] == false);
      const std::string& flag = call_.declaration.find(parameter)->beside;
      for (const std::string& name : presence.given) say(name, flag.empty() || instance.values[flag] == true);
    }
    for (const auto& [parameter, declared] : call_.declaration.parameters()) {
      if (declared.source != CallSource::kForm) continue;
      for (const std::string& name : declared.arguments) say(name, !is_usual(instance, parameter));
    }
    for (const auto& [parameter, forms] : call.forms) say(parameter, !is_usual(instance, parameter));
    for (const auto& [parameter, axes] : call.sizes) {
      if (draw_.properties()[parameter].value("default", Json()) != 0) continue;
      for (const CallAxis& axis : axes) say(axis.argument, instance.values[parameter] != 0);
    }
    for (const CallArgument& entry : call.arguments) {
      const std::string& name = entry.argument.name;
      if (entry.argument.role == ArgumentRole::kOutput || !entry.optional) continue;
      const bool there = find(signature, name) != nullptr;
      if (!wanted.contains(name)) {
        EXPECT_TRUE(there || !usual) << name << " is left out, and nothing says when";
      }
      if (!wanted.contains(name)) continue;
      EXPECT_TRUE(!there || wanted[name]) << name << " is there";
      EXPECT_TRUE(there || !wanted[name] || !usual) << name << " is missing";
    }
  });
}

TEST_P(Call, OtherKeywordsBringNoArguments) {
  const auto names = [](const Signature& signature) {
    std::set<std::string> list;
    for (const Argument& argument : signature) list.insert(argument.name);
    return list;
  };
  for (const DrawnInstance& instance : instances_) {
    for (const auto& [parameter, rules] : draw_.properties().items()) {
      const CallParameter& declared = *call_.declaration.find(parameter);
      if (declared.shapes || declared.source == CallSource::kSize || declared.source == CallSource::kSteps) continue;
      if (parameter == call_.declaration.declares()) continue;
      Json changed = instance.values;
      changed[parameter] = draw_.value(rules);
      const OpSpecPtr other = draw_.spec(changed);
      for (const Direction direction : kDirections) {
        if (other == nullptr || !other->supports(direction) || !instance.spec->supports(direction)) continue;
        EXPECT_EQ(names(other->signature(direction)), names(instance.spec->signature(direction)))
            << parameter << " " << changed.dump();
      }
    }
  }
}

// Sizes in terms of parameters, of instances whose flags have their defaults. A letter is one size.
TEST_P(Call, ShapesAreInTermsOfParameters) {
  for_each_signature([&](const DrawnInstance& instance, const CallInterface& call, const Signature& signature) {
    for (const std::string& keyword : call.keywords) {
      if (instance.values[keyword].is_boolean() && !is_usual(instance, keyword)) return;
    }
    std::map<std::string, int64_t> letters;
    const auto check = [&](const Argument& argument, const std::vector<std::string>& shape) {
      ASSERT_EQ(argument.shape.size(), shape.size()) << argument.name;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const Dimension& size = argument.shape[axis];
        if (!size.is_constant()) continue;
        int64_t product = 1;
        for (const std::string& factor : split(shape[axis], '*')) {
          const bool number = factor.find_first_not_of("0123456789") == std::string::npos;
          const auto value = instance.values.find(factor);
          if (number || value != instance.values.end())
            product *= number ? std::stoll(factor) : value->get<int64_t>();
          else
            product *= letters.emplace(factor, size.bias / product).first->second;
        }
        EXPECT_EQ(size.bias, product) << argument.name << " " << shape[axis];
      }
    };
    for (const auto& [parameter, forms] : call.forms) {
      for (const CallForm& form : forms) {
        if (instance.values[parameter] == form.value) check(*find(signature, parameter), form.shape);
      }
    }
    // Letters follow from inputs, which come first.
    for (const Argument& argument : signature) {
      const bool has_forms =
          std::ranges::any_of(call.forms, [&](const auto& entry) { return entry.first == argument.name; });
      ASSERT_NE(call.find(argument.name), nullptr) << argument.name;
      const std::string of = call.find(argument.name)->gradient_of;
      const bool of_forms = std::ranges::any_of(call.forms, [&](const auto& entry) { return entry.first == of; });
      if (!has_forms && !of_forms) check(argument, call.find(argument.name)->shape);
    }
  });
}

TEST_P(Call, GradientsAreOfArgumentsOfTheirShape) {
  std::set<std::string> of_inputs;
  for (const DrawnInstance& instance : instances_) {
    const bool changed = std::ranges::any_of(call_.declaration.parameters(), [&](const auto& entry) {
      return entry.second.forward_only && !is_usual(instance, entry.first);
    });
    if (call_.backward && !instance.spec->limit_of(Direction::kBackward)) {
      EXPECT_EQ(instance.spec->supports(Direction::kBackward), !changed) << instance.values.dump();
    }
    if (!instance.spec->supports(Direction::kBackward)) continue;
    SCOPED_TRACE(instance.values.dump());
    const Signature forward = instance.spec->signature(Direction::kForward);
    for (const Argument& gradient : instance.spec->signature(Direction::kBackward)) {
      ASSERT_NE(call_.backward->find(gradient.name), nullptr) << gradient.name;
      const CallArgument& entry = *call_.backward->find(gradient.name);
      const bool output = gradient.role == ArgumentRole::kOutput;
      if (output) {
        EXPECT_FALSE(entry.gradient_of.empty()) << gradient.name << " is the gradient of no input";
      }
      if (entry.gradient_of.empty()) continue;
      const Argument* of = find(forward, entry.gradient_of);
      if (of == nullptr) {  // bias of an instance whose backward alone has it
        EXPECT_TRUE(call_.forward->find(entry.gradient_of)->optional) << gradient.name;
        continue;
      }
      EXPECT_NE(of->role, gradient.role) << gradient.name;
      EXPECT_EQ(of->dtype, gradient.dtype) << gradient.name;
      EXPECT_EQ(shape_text(*of), shape_text(gradient)) << gradient.name;
      if (output) of_inputs.insert(entry.gradient_of);
      if (!entry.wanted.empty()) {
        EXPECT_EQ(instance.values[entry.wanted], true) << gradient.name;
      }
    }
    for (const std::string& name : call_.declaration.differentiable())
      EXPECT_NE(find(instance.spec->signature(Direction::kBackward), gradient_name(name)), nullptr) << name;
  }
  if (!call_.backward) return;
  for (const std::string& name : call_.declaration.gradients()) EXPECT_TRUE(of_inputs.contains(name)) << name;
}

// Names of the declaration are arguments of the operator.
TEST_P(Call, DeclaredNamesAreArguments) {
  const auto check = [&](const std::string& name) {
    const bool there = call_.forward->find(name) || (call_.backward && call_.backward->find(name));
    EXPECT_TRUE(there) << name;
  };
  for (const auto& [name, value] : call_.declaration.usual()) check(name);
  for (const CallDeclaration::Letter& letter : call_.declaration.letters()) check(letter.argument);
  for (const CallDeclaration::PassedOn& passed : call_.declaration.passed_on()) {
    EXPECT_NE(call_.forward->find(passed.input), nullptr) << passed.input;
    EXPECT_NE(call_.forward->find(passed.output), nullptr) << passed.output;
    if (!passed.factor.empty()) check(passed.factor);
  }
}

// A call with the arguments of an instance, in which symbols are numbers from 3 on, and integers are kInteger.
class SignatureCall : public CallInputs {
 public:
  static constexpr int64_t kInteger = 5;

  SignatureCall(const CallFunction& function, const Signature& signature, const Json& values) : signature_(signature) {
    for (const Argument& argument : signature) {
      for (const Dimension& size : argument.shape)
        if (!size.symbol.empty()) symbols_.emplace(size.symbol, 3 + static_cast<int64_t>(symbols_.size()));
    }
    for (const Argument& argument : signature) {
      if (argument.role == ArgumentRole::kOutput) continue;
      if (argument.kind == ArgumentKind::kTensor)
        given.tensors[argument.name] = {sizes_of(argument), std::string(to_string(argument.dtype))};
      else
        given.numbers.insert(argument.name);
    }
    // Arguments that only decide the instance may be given, too, beside those that follow from it.
    const auto deciding = function.deciding();
    for (const auto& [parameter, presence] : function.interface.presences) {
      for (const std::string& name : presence.given)
        if (presence.left_out.empty() && values[parameter] == true && deciding.contains(name))
          decide(function, name, values);
    }
    for (const std::string& keyword : function.interface.keywords) given.keywords[keyword] = values[keyword];
    for (const auto& [symbol, keyword] : function.interface.rows)
      if (symbols_.contains(symbol)) given.rows.insert(keyword);
  }

  std::vector<int64_t> sizes_of(const Argument& argument) const {
    std::vector<int64_t> sizes;
    for (const Dimension& size : argument.shape) {
      const int64_t symbol = size.symbol.empty() ? 0 : symbols_.at(size.symbol);
      sizes.push_back(size.follows_integer() ? *size.integer_size(symbol, kInteger)
                      : size.is_constant()   ? size.bias
                                             : size.size(symbol));
    }
    return sizes;
  }
  int64_t symbol(const std::string& name) const { return symbols_.at(name); }
  int64_t size(int argument, int axis) const override {
    return sizes_of(signature_[static_cast<size_t>(argument)])[static_cast<size_t>(axis)];
  }
  int64_t number(int) const override { return kInteger; }

  GivenCall given;

 private:
  void decide(const CallFunction& function, const std::string& name, const Json& values) {
    const Argument& argument = function.interface.find(name)->argument;
    if (given.has(name)) return;
    if (argument.kind != ArgumentKind::kTensor) {
      given.numbers.insert(name);
      return;
    }
    std::string dtype(to_string(argument.dtype));
    for (const auto& [parameter, names] : function.interface.dtypes)
      if (std::ranges::find(names, name) != names.end()) dtype = values[parameter];
    given.tensors[name] = {std::vector<int64_t>(argument.shape.size(), 1), dtype};
  }

  const Signature& signature_;
  std::map<std::string, int64_t> symbols_;
};

TEST_P(Call, ACallWithTheArgumentsOfAnInstanceIsThatInstance) {
  for_each_signature([&](const DrawnInstance& instance, const CallInterface&, const Signature& signature) {
    const auto function = call_function(GetParam(), direction_);
    ASSERT_TRUE(function.ok()) << function.status().message();
    const SignatureCall call(**function, signature, instance.values);
    const auto resolved = resolve_call(**function, call.given);
    ASSERT_TRUE(resolved.ok()) << resolved.status().message();
    ASSERT_EQ(resolved->signature.size(), signature.size());
    for (size_t at = 0; at < signature.size(); ++at) {
      EXPECT_EQ(resolved->signature[at].name, signature[at].name);
      EXPECT_EQ(resolved->signature[at].dtype, signature[at].dtype) << signature[at].name;
      EXPECT_EQ(shape_text(resolved->signature[at]), shape_text(signature[at])) << signature[at].name;
    }
    const auto sizes = OutputSizes::make(**function, resolved->signature, call.given);
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    std::vector<int64_t> rows, expected, found(sizes->count());
    for (const SizeSymbol* symbol : sizes->given()) rows.push_back(call.symbol(symbol->name));
    for (const Argument& argument : signature) {
      if (argument.role != ArgumentRole::kOutput) continue;
      const std::vector<int64_t> own = call.sizes_of(argument);
      expected.insert(expected.end(), own.begin(), own.end());
    }
    const Status status = sizes->evaluate(resolved->signature, call, rows, found);
    // Random numbers of rows do not add up as the rows of two tensors do.
    const bool is_sum = std::ranges::any_of(sizes->symbols(), [](const SizeSymbol& symbol) {
      return symbol.source == SizeSymbol::Source::kSum || symbol.source == SizeSymbol::Source::kRest;
    });
    if (is_sum) return;
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(found, expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Operators, Call, testing::ValuesIn(operator_names()),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(CallDeclarations, MustFitTheParameters) {
  const Json schema = operator_schema("silu");
  const auto message = [&](const CallDeclaration& declaration) {
    return CallInstances::make("silu", declaration, schema).status().message();
  };
  CallDeclaration whole, part;
  EXPECT_EQ(message(row_call(whole, "x")), "");
  EXPECT_EQ(message(part.size("width", {{"x", 1}})),
            "compiler/spec/operators/silu/call.cpp does not declare the parameter dtype");
  EXPECT_EQ(message(whole.keywords("weight")),
            "compiler/spec/operators/silu/call.cpp declares what the operator does not have, the parameter weight");
}

}  // namespace
}  // namespace hstujit
