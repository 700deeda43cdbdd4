#include "python/native/operators.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "compiler/support/json.h"

namespace hstujit::torch {
namespace {

constexpr char kDeclaredTensors[] = "operand_tensors";

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
    for (const std::string name : call_["order"]) add_input(name);
    for (const std::string name : call_["keywords"]) add_parameter(name);
    for (const Json& rows : call_["rows"]) add({rows["keyword"], HSTUJIT_GIVEN_INTEGER, true}, "SymInt?", "None");
    made_.declares = call_.value("declares", "");
    if (!made_.declares.empty()) {
      made_.declared = static_cast<int>(made_.slots.size());
      add({kDeclaredTensors, HSTUJIT_GIVEN_TENSOR, true}, "Tensor[]?", "None");
      made_.lists_outputs = made_.direction == HSTUJIT_BACKWARD;
    }
    for (const Json& argument : call_["arguments"])
      if (argument["role"] == "output") made_.outputs.push_back(argument["name"]);
    made_.first = static_cast<int>(std::ranges::find(made_.slots, true, &Slot::is_required) - made_.slots.begin());
    add_sources();
    made_.schema = made_.name + "(" + arguments_ + ") -> " + results();
    return std::move(made_);
  }

 private:
  // `fallback` is empty for an argument without a default.
  void add(Slot slot, const std::string& type, const std::string& fallback) {
    const bool is_first_keyword = made_.slots.size() == call_["order"].size();
    arguments_ += (arguments_.empty() ? "" : ", ") + std::string(is_first_keyword ? "*, " : "") + type + " " +
                  slot.name + (fallback.empty() ? "" : "=" + fallback);
    made_.slots.push_back(std::move(slot));
  }

  void add_input(const std::string& name) {
    const Json& argument = *std::ranges::find_if(call_["arguments"], [&](const Json& a) { return a["name"] == name; });
    const bool is_tensor = argument["kind"] == "tensor", is_real = argument["kind"] == "float";
    const bool optional = argument.contains("optional");
    const std::string type = is_tensor ? "Tensor" : is_real ? "float" : "SymInt";
    const auto kind = is_tensor ? HSTUJIT_GIVEN_TENSOR : is_real ? HSTUJIT_GIVEN_REAL : HSTUJIT_GIVEN_INTEGER;
    const std::string usual = argument.contains("usual") ? dump_json(argument["usual"]) : "";
    add({name, kind, optional, is_tensor && !optional}, optional ? type + "?" : type, optional ? "None" : usual);
  }

  void add_parameter(const std::string& name) {
    const Json& rules = parameters_[name];
    const std::string declared = rules.value("type", "");
    const Json values = rules.value("enum", Json::array());
    const bool integers = !values.empty() && std::ranges::all_of(values, [](const Json& v) { return v.is_number(); });
    const auto kind = declared == "boolean"               ? HSTUJIT_GIVEN_FLAG
                      : declared == "integer" || integers ? HSTUJIT_GIVEN_INTEGER
                                                          : HSTUJIT_GIVEN_TEXT;
    const std::string type = kind == HSTUJIT_GIVEN_FLAG ? "bool" : kind == HSTUJIT_GIVEN_INTEGER ? "int" : "str";
    const auto found = rules.find("default");
    std::string fallback = found == rules.end() ? "" : dump_json(*found);
    if (kind == HSTUJIT_GIVEN_FLAG && !fallback.empty()) fallback = *found == true ? "True" : "False";
    add({name, kind, false, false, true}, type, fallback);
  }

  void add_sources() {
    for (const Json& axes : call_["sizes"]) {
      for (const Json& axis : axes) {
        const Axis found = {made_.slot_of(axis["argument"].get<std::string>()), axis["axis"]};
        if (std::ranges::find(made_.axes, found) == made_.axes.end()) made_.axes.push_back(found);
      }
    }
    for (const auto& form : call_["forms"].items()) made_.forms.push_back(made_.slot_of(form.key()));
  }

  std::string results() const {
    if (made_.lists_outputs) return "Tensor[]";
    std::string list = "Tensor";
    for (std::size_t i = 1; i < made_.outputs.size(); ++i) list += ", Tensor";
    return made_.outputs.size() == 1 ? list : "(" + list + ")";
  }

  const Json& call_;
  const Json& parameters_;
  Operator made_;
  std::string arguments_;
};

}  // namespace

int Operator::slot_of(std::string_view wanted) const {
  return static_cast<int>(std::ranges::find(slots, wanted, &Slot::name) - slots.begin());
}

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
      throw std::logic_error(made.name + " has more arguments than this library supports");
  }
  return all;
}

}  // namespace hstujit::torch
