#include "compiler/spec/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/sequence_rows.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

// Adds an argument of a step to those of the program, or to what is known of it.
void add(Signature& signature, const Argument& argument) {
  const int known = find_argument(signature, argument.name);
  if (known < 0) {
    signature.push_back(argument);
    return;
  }
  Argument& first = signature[static_cast<size_t>(known)];
  first.alignment = std::max(first.alignment, argument.alignment);
  first.min = std::max(first.min, argument.min);
  first.max = std::min(first.max, argument.max);
  first.range = {std::max(first.range.min, argument.range.min), std::min(first.range.max, argument.range.max)};
}

}  // namespace

const Argument& Program::value(int index) const {
  const auto at = static_cast<size_t>(index);
  return at < arguments.size() ? arguments[at] : temporaries[at - arguments.size()];
}

ProgramBuilder& ProgramBuilder::temporary(std::string name, DataType dtype, int64_t columns) {
  Argument argument;
  argument.name = std::move(name);
  argument.dtype = dtype;
  argument.shape = {Dimension::of(std::string(kSequenceAxis)), Dimension::constant(columns)};
  temporaries_.push_back(std::move(argument));
  return *this;
}

std::string ProgramBuilder::step_name(const OpSpec& spec) const {
  std::string name(spec.op());
  for (int number = 2;; ++number) {
    const auto known =
        std::find_if(steps_.begin(), steps_.end(), [&](const ProgramStep& step) { return step.name == name; });
    if (known == steps_.end() || known->spec->to_json() == spec.to_json()) return name;
    name = fmt::format("{}_{}", spec.op(), number);
  }
}

ProgramBuilder& ProgramBuilder::step(OpSpecPtr spec, Direction direction,
                                     const std::map<std::string, ProgramValue>& operands) {
  const auto value_of = [&](const std::string& argument) {
    const auto elsewhere = operands.find(argument);
    return elsewhere == operands.end() ? ProgramValue{argument} : elsewhere->second;
  };
  std::vector<ProgramValue> values;
  for (const Argument& argument : spec->signature(direction)) {
    ProgramValue value = value_of(argument.name);
    if (find_argument(temporaries_, value.name) < 0) {
      Argument own = argument;
      own.name = value.name;
      if (!value.doc.empty()) own.doc = value.doc;
      for (Dimension& dimension : own.shape) {
        if (dimension.is_jagged()) dimension.offsets = value_of(dimension.offsets).name;
        if (dimension.follows_integer()) dimension.integer = value_of(dimension.integer).name;
      }
      add(argument.role == ArgumentRole::kInput ? inputs_ : outputs_, own);
    }
    values.push_back(std::move(value));
  }
  std::string name = step_name(*spec);
  steps_.push_back({std::move(name), std::move(spec), direction, {}});
  values_.push_back(std::move(values));
  return *this;
}

Program ProgramBuilder::finish() {
  Program program{std::move(inputs_), std::move(temporaries_), std::move(steps_)};
  program.arguments.insert(program.arguments.end(), outputs_.begin(), outputs_.end());
  const auto arguments = static_cast<int>(program.arguments.size());
  for (size_t step = 0; step < program.steps.size(); ++step) {
    for (const ProgramValue& value : values_[step]) {
      const int temporary = find_argument(program.temporaries, value.name);
      const int index = temporary < 0 ? find_argument(program.arguments, value.name) : arguments + temporary;
      program.steps[step].operands.push_back(
          {index, value.first_column >= 0, std::max<int64_t>(value.first_column, 0)});
    }
  }
  return program;
}

}  // namespace hstujit
