#include "python/native/operators.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "compiler/support/json.h"

namespace hstujit::torch {
namespace {

int place_of(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<int>(std::ranges::find(names, name) - names.begin());
}

// An argument that need not be given: less stands first. The tensor of a seed comes last, because calls by position are
// older than it.
int place(const Json& argument) {
  if (argument["kind"] != "tensor") return 1;
  return argument.value("semantic", "") == "seed" ? 2 : 0;
}

// Makes one direction of an operator from its description.
class OperatorReader {
 public:
  OperatorReader(const std::string& op, const std::string& direction, const Json& call, const Json& parameters)
      : call_(call), parameters_(parameters) {
    made_.op = op;
    made_.direction = direction == "forward" ? HSTUJIT_FORWARD : HSTUJIT_BACKWARD;
    made_.name = direction == "forward" ? op : op + "_backward";
  }

  Operator read() {
    std::vector<const Json*> order, others;
    for (const Json& argument : call_["arguments"]) {
      if (argument["role"] == "output") {
        made_.outputs.push_back(argument["name"]);
        continue;
      }
      const bool optional = argument.contains("optional");
      made_.inputs.push_back(argument["name"]);
      made_.required.push_back(!optional && argument["kind"] == "tensor");
      (optional || argument.contains("usual") ? others : order).push_back(&argument);
    }
    made_.first = static_cast<int>(std::ranges::find(made_.required, true) - made_.required.begin());
    std::ranges::stable_sort(others, {}, [](const Json* argument) { return place(*argument); });
    order.insert(order.end(), others.begin(), others.end());
    made_.texts.reserve(call_["keywords"].size());  // fallbacks point into it
    for (const Json* argument : order) add_input(*argument);
    made_.positional = static_cast<int>(made_.slots.size());
    for (const Json& keyword : call_["keywords"]) add_parameter(keyword);
    for (const Json& rows : call_["rows"]) {
      made_.rows.push_back(rows["keyword"]);
      add(Kind::kInteger, true, Group::kRows, made_.rows, "SymInt? " + made_.rows.back() + "=None");
    }
    add_sources();
    made_.schema = made_.name + "(" + arguments_ + ") -> " + results();
    return std::move(made_);
  }

 private:
  void add(Kind kind, bool optional, Group group, const std::vector<std::string>& names, const std::string& text) {
    add(kind, optional, group, names.back(), static_cast<int>(names.size()) - 1, text);
  }
  void add(Kind kind, bool optional, Group group, const std::string& name, int index, const std::string& text) {
    const bool keyword = group != Group::kInput && static_cast<int>(made_.slots.size()) == made_.positional;
    arguments_ += (arguments_.empty() ? "" : ", ") + std::string(keyword ? "*, " : "") + text;
    made_.slots.push_back({name, kind, optional, group, index, {}});
    if (optional) made_.slots.back().fallback = Value{};
  }

  void add_input(const Json& argument) {
    const std::string name = argument["name"], kind = argument["kind"];
    const std::string type = kind == "tensor" ? "Tensor" : kind == "float" ? "float" : "SymInt";
    const Kind taken = kind == "tensor" ? Kind::kTensor : kind == "float" ? Kind::kReal : Kind::kInteger;
    const int index = place_of(made_.inputs, name);
    if (argument.contains("optional"))
      return add(taken, true, Group::kInput, name, index, type + "? " + name + "=None");
    const auto usual = argument.find("usual");
    if (usual == argument.end()) return add(taken, false, Group::kInput, name, index, type + " " + name);
    add(taken, false, Group::kInput, name, index, type + " " + name + "=" + dump_json(*usual));
    Value& fallback = made_.slots.back().fallback.emplace();
    fallback.kind = taken;
    if (taken == Kind::kReal)
      fallback.real = *usual;
    else
      fallback.integer = *usual;
  }

  void add_parameter(const std::string& name) {
    made_.parameters.push_back(name);
    const Json& rules = parameters_[name];
    const std::string declared = rules.value("type", "");
    const Json values = rules.value("enum", Json::array());
    const bool integers = !values.empty() && std::ranges::all_of(values, [](const Json& v) { return v.is_number(); });
    const Kind kind = declared == "boolean"               ? Kind::kFlag
                      : declared == "integer" || integers ? Kind::kInteger
                                                          : Kind::kText;
    const std::string type = kind == Kind::kFlag ? "bool" : kind == Kind::kInteger ? "int" : "str";
    const auto fallback = rules.find("default");
    if (fallback == rules.end()) return add(kind, false, Group::kParameter, made_.parameters, type + " " + name);
    const std::string text = kind == Kind::kFlag ? (*fallback == true ? "True" : "False") : dump_json(*fallback);
    add(kind, false, Group::kParameter, made_.parameters, type + " " + name + "=" + text);
    Value& value = made_.slots.back().fallback.emplace();
    value.kind = kind;
    if (kind == Kind::kText) {
      const std::string& kept = made_.texts.emplace_back(fallback->get<std::string>());
      value.text = kept.c_str();
      value.size = static_cast<std::int32_t>(kept.size());
    } else {
      value.integer = kind == Kind::kFlag ? (*fallback == true ? 1 : 0) : fallback->get<std::int64_t>();
    }
  }

  void add_sources() {
    for (const Json& axes : call_["sizes"]) {
      for (const Json& axis : axes) {
        const Axis found = {place_of(made_.inputs, axis["argument"].get<std::string>()), axis["axis"]};
        const auto same = [&](const Axis& known) { return known.input == found.input && known.axis == found.axis; };
        if (std::ranges::none_of(made_.axes, same)) made_.axes.push_back(found);
      }
    }
    for (const auto& form : call_["forms"].items()) made_.forms.push_back(place_of(made_.inputs, form.key()));
  }

  std::string results() const {
    std::string list;
    for (std::size_t i = 0; i < made_.outputs.size(); ++i) list += i == 0 ? "Tensor" : ", Tensor";
    return made_.outputs.size() == 1 ? list : "(" + list + ")";
  }

  const Json& call_;
  const Json& parameters_;
  Operator made_;
  std::string arguments_;
};

}  // namespace

std::vector<Operator> all_operators() {
  hstujit_text text = {};
  if (hstujit_operators(&text) != HSTUJIT_OK) throw std::runtime_error(hstujit_last_error());
  const std::unique_ptr<hstujit_text, void (*)(hstujit_text*)> freed(&text, hstujit_text_free);
  const Json described = json_or_null({text.data, text.size});
  std::vector<Operator> all;
  for (const Json& entry : described) {
    for (const auto& [direction, call] : entry["calls"].items())
      all.push_back(OperatorReader(entry["op"], direction, call, entry["parameters"]["properties"]).read());
  }
  for (const Operator& made : all) {
    if (made.slots.size() > kMaxArguments || made.outputs.size() > kMaxOutputs)
      throw std::logic_error(made.name + " has more arguments than this library has room for");
  }
  return all;
}

}  // namespace hstujit::torch
