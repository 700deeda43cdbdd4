#include "compiler/spec/step_operators.h"

#include <set>

#include "compiler/spec/op_spec.h"
#include "compiler/spec/program.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

void add_steps(const OpSpec& spec, std::set<std::string, std::less<>>& ops) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const Program* const program = spec.program(direction);
    if (program == nullptr) continue;
    for (const ProgramStep& step : program->steps) ops.emplace(step.spec->op());
  }
}

// The values of a parameter that steps may depend on: numbers only change their sizes.
std::vector<Json> choices_of(const Json& property) {
  if (property.contains("enum")) return property["enum"].get<std::vector<Json>>();
  if (property.contains("type") && property["type"] == "boolean") return {true, false};
  return {};
}

}  // namespace

// One parameter after the other: what a step is there for is never said by two of them only.
std::vector<std::string> step_operators(std::string_view op) {
  std::set<std::string, std::less<>> ops;
  const Result<OpSpecPtr> smallest = smallest_op_spec(op);
  if (!smallest.ok()) return {};
  add_steps(**smallest, ops);
  // Defaults are left out: some follow from other parameters.
  const Json least = json_or_null(key_text(**smallest)), schema = operator_schema(op);
  for (const auto& [name, property] : schema["properties"].items()) {
    for (const Json& choice : choices_of(property)) {
      Json other = least;
      other[name] = choice;
      // Some values only go with others.
      if (const Result<OpSpecPtr> spec = parse_op_spec(other, std::string(op)); spec.ok()) add_steps(**spec, ops);
    }
  }
  ops.erase(std::string(op));
  return {ops.begin(), ops.end()};
}

}  // namespace hstujit
