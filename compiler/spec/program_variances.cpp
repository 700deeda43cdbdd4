// What the rounding of temporaries may do to a program's outputs (docs/numerics.md, "Programs").
#include <algorithm>
#include <cmath>

#include "compiler/spec/program_reference.h"
#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

// Rows of each sequence on every axis, as the values of a call have them.
Lengths lengths_in(const Signature& signature, const std::vector<HostValue>& values) {
  Lengths lengths;
  const auto rows_of = [&](std::string_view axis) -> std::vector<int64_t>& {
    return axis == kSequenceAxis ? lengths.rows : lengths.other_rows[std::string(axis)];
  };
  for (size_t i = 0; i < signature.size(); ++i) {
    const std::vector<int64_t>& integers = values[i].tensor.integers;
    if (signature[i].semantic == Semantic::kCounts) lengths.counts_of(signature[i].name) = integers;
    if (signature[i].semantic != Semantic::kOffsets) continue;
    for (size_t b = 1; b < integers.size(); ++b) rows_of(signature[i].axis).push_back(integers[b] - integers[b - 1]);
  }
  for (size_t i = 0; i < signature.size(); ++i) {
    const auto integer = static_cast<int64_t>(values[i].scalar);
    if (signature[i].semantic == Semantic::kMaxRows && signature[i].axis == kSequenceAxis)
      lengths.max_seq_len = integer;
    if (signature[i].semantic == Semantic::kMaxRows && signature[i].axis == kQueryAxis) {
      std::vector<int64_t>& rows = rows_of(kQueryAxis);
      if (rows.empty()) rows.assign(lengths.rows.size(), integer);
    }
    if (lengths.rows.empty() && !has_sequences(signature) && signature[i].role == ArgumentRole::kInput &&
        has_rows(signature[i]))
      lengths.rows = {values[i].tensor.shape[0]};
  }
  return lengths;
}

// Keeps the part of the sequences that are asked for: their rows, or as much of a sum over all rows as they are many.
void keep_sequences(const Argument& argument, const Lengths& lengths, const std::vector<bool>& asked,
                    std::vector<double>& variances) {
  if (asked.size() != lengths.rows.size() || std::find(asked.begin(), asked.end(), false) == asked.end()) return;
  if (!has_rows(argument)) {
    const auto part = static_cast<double>(std::count(asked.begin(), asked.end(), true));
    for (double& variance : variances) variance *= part / static_cast<double>(asked.size());
    return;
  }
  const std::vector<int64_t>& rows = sequence_rows(argument, lengths);
  const int64_t elements = part_elements(argument, lengths.max_seq_len);
  auto begin = variances.begin();
  for (size_t b = 0; b < asked.size(); ++b) {
    const auto end = begin + rows[b] * elements;
    if (!asked[b]) std::fill(begin, end, 0);
    begin = end;
  }
}

}  // namespace

std::vector<std::vector<double>> ProgramReference::error_variances(const OpSpec& spec, Direction direction,
                                                                   const std::vector<HostValue>& inputs,
                                                                   const std::vector<bool>& sequences) const {
  constexpr int kTrials = 8;
  const Program& program = *spec.program(direction);
  const Signature& arguments = program.arguments;
  const Lengths lengths = lengths_in(arguments, inputs);
  std::vector<std::vector<double>> variances(arguments.size());

  // What each step adds by itself, on exact inputs: to an output of the program it counts as it is.
  std::vector<std::vector<std::vector<double>>> of_steps;
  std::vector<HostValue> exact = inputs, added(arguments.size() + program.temporaries.size());
  run_steps(
      program, lengths, exact, [&](const ProgramStep& step, const Signature& signature, std::vector<HostValue>& own) {
        of_steps.push_back(step.spec->error_variances(step.direction, own, {}));
        of_steps.back().resize(signature.size());
        for (size_t i = 0; i < signature.size(); ++i) {
          if (signature[i].role != ArgumentRole::kOutput) continue;
          of_steps.back()[i].resize(own[i].tensor.reals.size());
          HostValue value;
          value.tensor = {own[i].tensor.shape, of_steps.back()[i], {}};
          const ProgramOperand& operand = step.operands[i];
          place(std::move(value), operand, program.value(operand.value), added[static_cast<size_t>(operand.value)]);
        }
      });
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].role == ArgumentRole::kOutput) variances[i] = added[i].tensor.reals;
  }

  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    // The reference and an implementation round nearly the same numbers, each to either side: twice the variance of one
    // rounding.
    uint64_t stream = 0, number = 0;
    std::vector<HostValue> moved = inputs;
    run_steps(program, lengths, moved,
              [&](const ProgramStep& step, const Signature& signature, std::vector<HostValue>& own) {
                const std::vector<std::vector<double>>& of_step = of_steps[number++];
                for (size_t i = 0; i < signature.size(); ++i) {
                  if (signature[i].role != ArgumentRole::kOutput || !is_passed_on(program, step, step.operands[i]))
                    continue;
                  const double unit = unit_roundoff(signature[i].dtype);
                  std::vector<double>& elements = own[i].tensor.reals;
                  for (size_t e = 0; e < elements.size(); ++e) {
                    const double variance = 2 * rounding_variance(elements[e], unit) + of_step[i][e];
                    elements[e] += std::sqrt(variance) * random_normal(trial, stream, e);
                  }
                  ++stream;
                }
              });
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].role != ArgumentRole::kOutput) continue;
      const std::vector<double>&from = exact[i].tensor.reals, &to = moved[i].tensor.reals;
      variances[i].resize(from.size());
      for (size_t e = 0; e < from.size(); ++e) variances[i][e] += (to[e] - from[e]) * (to[e] - from[e]) / kTrials;
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].role == ArgumentRole::kOutput) keep_sequences(arguments[i], lengths, sequences, variances[i]);
  }
  return variances;
}

}  // namespace hstujit
