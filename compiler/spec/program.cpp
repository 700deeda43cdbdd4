#include "compiler/spec/program.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "compiler/spec/program_writes.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

// Adds what a step's argument asks for to what is known of the program's; false where there is none of that name.
bool add_to_known(Signature& signature, const Argument& argument) {
  const int known = find_argument(signature, argument.name);
  if (known < 0) return false;
  Argument& first = signature[static_cast<size_t>(known)];
  first.alignment = std::max(first.alignment, argument.alignment);
  first.min = std::max(first.min, argument.min);
  first.max = std::min(first.max, argument.max);
  if (first.semantic == Semantic::kData) {
    first.semantic = argument.semantic;
    first.axis = argument.axis;
  }
  if (first.joined.empty()) first.joined = argument.joined;
  first.accumulated = first.accumulated || argument.accumulated;
  first.range = {std::max(first.range.min, argument.range.min), std::min(first.range.max, argument.range.max)};
  return true;
}

void put_first(const std::vector<std::string>& names, Signature& signature) {
  const auto place = [&](const Argument& argument) { return std::find(names.begin(), names.end(), argument.name); };
  std::stable_sort(signature.begin(), signature.end(),
                   [&](const Argument& a, const Argument& b) { return place(a) < place(b); });
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
  argument.shape = {rows_, Dimension::constant(columns)};
  temporaries_.push_back(std::move(argument));
  return *this;
}

ProgramBuilder& ProgramBuilder::tensor(ArgumentRole role, std::string name, DataType dtype,
                                       std::vector<Dimension> shape, std::string_view doc) {
  Argument argument;
  argument.name = std::move(name);
  argument.role = role;
  argument.dtype = dtype;
  argument.shape = std::move(shape);
  argument.doc = doc;
  (role == ArgumentRole::kInput ? inputs_ : outputs_).push_back(std::move(argument));
  return *this;
}

ProgramBuilder& ProgramBuilder::matrix(ArgumentRole role, std::string name, DataType dtype, int64_t columns,
                                       std::string offsets, std::string_view doc) {
  return tensor(role, std::move(name), dtype,
                {Dimension::jagged(std::string(kSequenceAxis), std::move(offsets)), Dimension::constant(columns)}, doc);
}

ProgramBuilder& ProgramBuilder::rows(Dimension rows) {
  rows_ = std::move(rows);
  return *this;
}

ProgramBuilder& ProgramBuilder::stacked(int64_t count) {
  stacked_ = count;
  return *this;
}

ProgramBuilder& ProgramBuilder::inputs(std::vector<std::string> names) {
  first_inputs_ = std::move(names);
  return *this;
}

ProgramBuilder& ProgramBuilder::outputs(std::vector<std::string> names) {
  first_outputs_ = std::move(names);
  return *this;
}

ProgramBuilder& ProgramBuilder::step(OpSpecPtr spec, Direction direction, const ProgramValues& operands) {
  const auto value_of = [&](const std::string& argument) {
    const auto elsewhere = operands.find(argument);
    return elsewhere == operands.end() ? ProgramValue{argument} : elsewhere->second;
  };
  Signature signature = spec->signature(direction);
  std::vector<ProgramValue> values;
  for (const Argument& argument : signature) {
    ProgramValue value = value_of(argument.name);
    if (!value.name.empty() && find_argument(temporaries_, value.name) < 0) {
      Argument own = argument;
      own.name = value.name;
      if (!value.doc.empty()) own.doc = value.doc;
      own.in_place.clear();  // other steps may read the input afterwards
      for (std::string& axis : own.joined) axis = value_of(axis).name;
      for (Dimension& dimension : own.shape) {
        if (dimension == Dimension::of(std::string(kSequenceAxis))) dimension = rows_;
        if (dimension.is_jagged()) dimension.offsets = value_of(dimension.offsets).name;
        if (dimension.follows_integer()) dimension.integer = value_of(dimension.integer).name;
      }
      if (value.index >= 0) own.shape.insert(own.shape.begin(), Dimension::constant(stacked_));
      if (!add_to_known(outputs_, own) && !add_to_known(inputs_, own))
        (argument.role == ArgumentRole::kInput ? inputs_ : outputs_).push_back(std::move(own));
    }
    values.push_back(std::move(value));
  }
  std::string name(spec->op());
  std::string rows(has_sequences(signature) ? kSequenceAxis : row_axis(rows_));
  steps_.push_back({std::move(name), std::move(spec), direction, std::move(signature), {}, std::move(rows)});
  values_.push_back(std::move(values));
  workspaces_.emplace_back();
  return *this;
}

ProgramBuilder& ProgramBuilder::workspace_in(std::string value) {
  workspaces_.back() = std::move(value);
  return *this;
}

Program ProgramBuilder::finish() {
  put_first(first_inputs_, inputs_);
  put_first(first_outputs_, outputs_);
  Program program{std::move(inputs_), std::move(temporaries_), std::move(steps_)};
  program.arguments.insert(program.arguments.end(), outputs_.begin(), outputs_.end());
  const auto arguments = static_cast<int>(program.arguments.size());
  const auto index_of = [&](const std::string& name) {
    const int temporary = find_argument(program.temporaries, name);
    return temporary < 0 ? find_argument(program.arguments, name) : arguments + temporary;
  };
  for (size_t step = 0; step < program.steps.size(); ++step) {
    if (!workspaces_[step].empty()) {
      program.steps[step].workspace_in = index_of(workspaces_[step]);
      assert(program.steps[step].workspace_in != ProgramStep::kOwnWorkspace);
    }
    for (const ProgramValue& value : values_[step]) {
      program.steps[step].operands.push_back({value.name.empty() ? ProgramOperand::kNumber : index_of(value.name),
                                              value.first_column >= 0, std::max<int64_t>(value.first_column, 0),
                                              value.index, value.constant, value.is_for_now});
    }
  }
  if (const std::string mistake = find_lost_write(program); !mistake.empty()) throw std::logic_error(mistake);
  return program;
}

}  // namespace hstujit
