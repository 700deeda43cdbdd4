#include "compiler/spec/program_reference.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/spec/program_spec.h"
#include "compiler/spec/rounding.h"

namespace hstujit {

namespace {

int64_t elements_of(const std::vector<int64_t>& shape, size_t first) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end(), int64_t{1},
                         std::multiplies<>());
}

// Calls copy(place in the part, place in the value) for each row: `count` elements of one, from `first_column` on.
template <typename Copy>
void for_each_row(int64_t rows, int64_t count, int64_t width, int64_t first_column, const Copy& copy) {
  for (int64_t row = 0; row < rows; ++row) copy(row * count, row * width + first_column);
}

// The elements of a value that an operand of a step is: `count` neighbours in each of some rows.
struct PartOfValue {
  int64_t rows = 1, count = 0, width = 0, first = 0;

  // `value`: the shape of the whole value, `own`: of the part.
  PartOfValue(const ProgramOperand& operand, const std::vector<int64_t>& value, const std::vector<int64_t>& own) {
    const size_t axis = operand.index >= 0 ? 1 : 0;  // the first one of the value that has the part
    first = operand.first_column;
    if (operand.index >= 0) first += operand.index * elements_of(value, 1);
    if (!operand.columns || own.size() == 1) {
      width = count = elements_of(own, 0);
    } else {
      rows = value[axis];
      width = elements_of(value, axis + 1);
      count = elements_of(own, 1);
    }
  }
};

HostTensor part_of(const HostTensor& value, const ProgramOperand& operand, const Argument& argument) {
  HostTensor part;
  for (const Dimension& dimension : argument.shape)
    part.shape.push_back(dimension.is_constant() ? dimension.bias : value.shape[0]);
  const PartOfValue place(operand, value.shape, part.shape);
  part.reals.resize(static_cast<size_t>(elements_of(part.shape, 0)));
  for_each_row(place.rows, place.count, place.width, place.first, [&](int64_t to, int64_t from) {
    std::copy_n(value.reals.begin() + from, place.count, part.reals.begin() + to);
  });
  return part;
}

// Its inverse. A value without data gets that of `whole`, with zeroes.
void place_part(const HostTensor& part, const ProgramOperand& operand, const Argument& whole, HostTensor& value) {
  if (value.shape.empty()) {
    for (const Dimension& dimension : whole.shape)
      value.shape.push_back(dimension.is_constant() ? dimension.bias : part.shape[0]);
    value.reals.resize(static_cast<size_t>(elements_of(value.shape, 0)));
  }
  const PartOfValue place(operand, value.shape, part.shape);
  for_each_row(place.rows, place.count, place.width, place.first, [&](int64_t from, int64_t to) {
    std::copy_n(part.reals.begin() + from, place.count, value.reals.begin() + to);
  });
}

// Whether a later step may read what this one leaves in an output of the program.
bool is_output(const Program& program, const ProgramOperand& operand) {
  return program.value(operand.value).role == ArgumentRole::kOutput;
}

// Whether a step behind this one reads the value, which is rounded once then, as it is in memory.
bool is_read_behind(const Program& program, const ProgramStep& writer, int value) {
  const auto first = program.steps.begin() + (&writer - program.steps.data()) + 1;
  return std::any_of(first, program.steps.end(), [&](const ProgramStep& step) {
    for (size_t i = 0; i < step.operands.size(); ++i) {
      if (step.signature[i].role == ArgumentRole::kInput && step.operands[i].value == value) return true;
    }
    return false;
  });
}

}  // namespace

const OperatorReference& program_reference() {
  static const ProgramReference reference;
  return reference;
}

std::vector<HostValue> ProgramReference::make_inputs(const OpSpec& spec, Direction direction, const Lengths& lengths,
                                                     uint64_t seed) const {
  const Program& program = *spec.program(direction);
  std::vector<HostValue> values(program.arguments.size());
  using Part = std::tuple<int, int64_t, int64_t>;
  std::set<Part> drawn;  // values, and their first columns and indices, -1 of whole ones
  for (const ProgramStep& step : program.steps) {
    const Signature& signature = step.signature;
    std::vector<HostValue> own = step.spec->make_inputs(step.direction, lengths_of(step, lengths), seed);
    for (size_t i = 0; i < signature.size(); ++i) {
      const ProgramOperand& operand = step.operands[i];
      if (signature[i].role != ArgumentRole::kInput || operand.is_number()) continue;
      if (program.is_temporary(operand.value) || is_output(program, operand)) continue;
      if (drawn.contains(Part(operand.value, -1, -1))) continue;
      if (drawn.emplace(operand.value, operand.columns ? operand.first_column : -1, operand.index).second) {
        place(std::move(own[i]), operand, program.value(operand.value), values[static_cast<size_t>(operand.value)]);
      }
    }
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;  // the steps' inputs are independent of each other
  }
  return values;
}

void ProgramReference::compute(const OpSpec& spec, Direction direction, const Lengths& lengths,
                               std::vector<HostValue>& values) const {
  run_steps(*spec.program(direction), lengths, values, {});
}

void ProgramReference::place(HostValue own, const ProgramOperand& operand, const Argument& whole, HostValue& value) {
  if (operand.is_whole()) {
    value = std::move(own);
  } else {
    place_part(own.tensor, operand, whole, value.tensor);
  }
}

bool ProgramReference::is_passed_on(const Program& program, const ProgramStep& step, const ProgramOperand& operand) {
  return program.is_temporary(operand.value) || is_read_behind(program, step, operand.value);
}

void ProgramReference::run_steps(const Program& program, const Lengths& lengths, std::vector<HostValue>& values,
                                 const StepDone& done) {
  std::vector<HostValue> all = std::move(values);
  all.resize(program.arguments.size() + program.temporaries.size());
  for (const ProgramStep& step : program.steps) {
    const Signature& signature = step.signature;
    std::vector<HostValue> own(signature.size());
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role != ArgumentRole::kInput) continue;
      const ProgramOperand& operand = step.operands[i];
      if (operand.is_number()) {
        own[i].scalar = operand.number;
        continue;
      }
      const HostValue& value = all[static_cast<size_t>(operand.value)];
      own[i] = operand.is_whole() ? value : HostValue{part_of(value.tensor, operand, signature[i]), 0};
      if (signature[i].kind == ArgumentKind::kInt) own[i].scalar += operand.number;
    }
    step.spec->reference(step.direction, lengths_of(step, lengths), own);
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role != ArgumentRole::kOutput || !is_passed_on(program, step, step.operands[i])) continue;
      for (double& real : own[i].tensor.reals) real = round_to(signature[i].dtype, real);
    }
    if (done) done(step, signature, own);
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role != ArgumentRole::kOutput) continue;
      const ProgramOperand& operand = step.operands[i];
      place(std::move(own[i]), operand, program.value(operand.value), all[static_cast<size_t>(operand.value)]);
    }
  }
  all.resize(program.arguments.size());
  values = std::move(all);
}

}  // namespace hstujit
