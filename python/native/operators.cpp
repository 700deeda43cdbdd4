#include "python/native/operators.h"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "compiler/support/json.h"

namespace hstujit::torch {
namespace {

constexpr char kDeclaredTensors[] = "operand_tensors";

int place_of(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<int>(std::ranges::find(names, name) - names.begin());
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
    std::map<std::string, const Json*> inputs;
    for (const Json& argument : call_["arguments"]) {
      const std::string name = argument["name"];
      if (argument["role"] == "output") {
        made_.outputs.push_back(name);
        continue;
      }
      inputs[name] = &argument;
      made_.inputs.push_back(name);
      made_.required.push_back(!argument.contains("optional") && argument["kind"] == "tensor");
    }
    made_.first = static_cast<int>(std::ranges::find(made_.required, true) - made_.required.begin());
    for (const Json& name : call_["order"]) add_input(name, *inputs.at(name));
    for (const Json& keyword : call_["keywords"]) add_parameter(keyword);
    for (const Json& rows : call_["rows"]) {
      made_.rows.push_back(rows["keyword"]);
      add(Kind::kInteger, true, Group::kRows, made_.rows.back(), index_of(made_.rows), "SymInt?", "None");
    }
    made_.declares = call_.value("declares", "");
    if (!made_.declares.empty()) {
      add(Kind::kTensors, true, Group::kDeclared, kDeclaredTensors, 0, "Tensor[]?", "None");
      made_.lists_outputs = made_.direction == HSTUJIT_BACKWARD;
    }
    add_sources();
    made_.schema = made_.name + "(" + arguments_ + ") -> " + results();
    return std::move(made_);
  }

 private:
  static int index_of(const std::vector<std::string>& names) { return static_cast<int>(names.size()) - 1; }

  // `fallback` is empty for an argument without a default.
  void add(Kind kind, bool optional, Group group, const std::string& name, int index, const std::string& type,
           const std::string& fallback) {
    const bool is_first_keyword = group != Group::kInput && std::ranges::none_of(made_.slots, [](const Slot& s) {
                                    return s.group != Group::kInput;
                                  });
    arguments_ += (arguments_.empty() ? "" : ", ") + std::string(is_first_keyword ? "*, " : "") + type + " " + name +
                  (fallback.empty() ? "" : "=" + fallback);
    made_.slots.push_back({name, kind, optional, group, index});
  }

  void add_input(const std::string& name, const Json& argument) {
    const std::string kind = argument["kind"];
    const std::string type = kind == "tensor" ? "Tensor" : kind == "float" ? "float" : "SymInt";
    const Kind taken = kind == "tensor" ? Kind::kTensor : kind == "float" ? Kind::kReal : Kind::kInteger;
    const bool optional = argument.contains("optional");
    const auto usual = argument.find("usual");
    const std::string fallback = optional ? "None" : usual == argument.end() ? "" : dump_json(*usual);
    add(taken, optional, Group::kInput, name, place_of(made_.inputs, name), optional ? type + "?" : type, fallback);
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
    const auto found = rules.find("default");
    std::string fallback = found == rules.end() ? "" : dump_json(*found);
    if (kind == Kind::kFlag && !fallback.empty()) fallback = *found == true ? "True" : "False";
    add(kind, false, Group::kParameter, name, index_of(made_.parameters), type, fallback);
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
    if (made_.lists_outputs) return "Tensor[]";
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
