#include "compiler/spec/program_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

double bytes_of(const Argument& argument, const Lengths& lengths) {
  if (argument.kind != ArgumentKind::kTensor) return 0;
  double lines = 1;
  const bool vector = argument.shape.size() == 1 && argument.shape[0].is_constant();
  if (has_rows(argument)) {
    lines = static_cast<double>(lengths.total_rows(row_axis(argument)));
  } else if (has_parts(argument) || (is_integer(argument.dtype) && !vector)) {
    lines = static_cast<double>(lengths.rows.size());
  }
  const int64_t elements = vector ? argument.shape[0].bias : part_elements(argument, lengths.max_seq_len);
  return lines * static_cast<double>(elements) * static_cast<double>(size_of(argument.dtype));
}

}  // namespace

Lengths lengths_of(const ProgramStep& step, const Lengths& lengths) {
  if (step.rows == kSequenceAxis) return lengths;
  const std::vector<int64_t>& rows = lengths.rows_of(step.rows);
  const auto longest = std::max_element(rows.begin(), rows.end());
  return {rows, {}, longest == rows.end() ? 0 : *longest, {}};
}

ProgramSpec::ProgramSpec(Program forward, std::optional<Program> backward)
    : forward_(std::move(forward)), backward_(std::move(backward)) {
  name_steps();
}

ProgramSpec::~ProgramSpec() = default;

void ProgramSpec::name_steps() {
  std::map<std::string, std::vector<std::string>> specs;  // of each operator, in order
  const auto name = [&](ProgramStep& step) {
    std::vector<std::string>& known = specs[step.name];
    const std::string text = key_text(*step.spec);
    const auto found = std::find(known.begin(), known.end(), text);
    const auto number = found - known.begin() + 1;
    if (found == known.end()) known.push_back(text);
    if (number > 1) step.name += fmt::format("_{}", number);
  };
  for (ProgramStep& step : forward_.steps) name(step);
  if (backward_) {
    for (ProgramStep& step : backward_->steps) name(step);
  }
}

const Program* ProgramSpec::program(Direction direction) const {
  if (direction == Direction::kForward) return &forward_;
  return backward_ ? &*backward_ : nullptr;
}

Work ProgramSpec::work(Direction direction, const Lengths& lengths) const {
  const Program* const program = this->program(direction);
  if (program == nullptr) return {};
  Work work;
  std::set<int> taken;
  for (const ProgramStep& step : program->steps) {
    const Work own = step.spec->work(step.direction, lengths_of(step, lengths));
    work.flops += own.flops;
    work.bytes += own.bytes;
    for (const ProgramOperand& operand : step.operands) {
      if (!operand.is_whole() || taken.insert(operand.value).second) continue;
      work.bytes -= bytes_of(program->value(operand.value), lengths);
    }
  }
  if (program->temporaries.empty()) return work;
  work.bytes = 0;
  for (const Argument& argument : program->arguments) work.bytes += bytes_of(argument, lengths);
  return work;
}

int64_t ProgramSpec::small_batch_heads(Direction direction) const {
  int64_t heads = 0;
  for (const ProgramStep& step : program(direction)->steps)
    heads = std::max(heads, step.spec->small_batch_heads(step.direction));
  return heads;
}

// A GradientProgram has no forward direction of its own.
const std::vector<ProgramStep>& ProgramSpec::steps() const {
  return forward_.steps.empty() && backward_ ? backward_->steps : forward_.steps;
}

GeneratedRows ProgramSpec::generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const {
  for (const ProgramStep& step : steps()) {
    GeneratedRows rows = step.spec->generated_rows(sequence, drawn, max_seq_len);
    if (!rows.others.empty()) return rows;
  }
  return {drawn};
}

std::map<std::string, int64_t> ProgramSpec::generated_sizes(const Lengths& lengths) const {
  std::map<std::string, int64_t> sizes;
  for (const ProgramStep& step : steps()) sizes.merge(step.spec->generated_sizes(lengths));
  return sizes;
}

double ProgramSpec::error_bound(Direction direction) const {
  double squares = 0;
  for (const ProgramStep& step : program(direction)->steps) {
    const double bound = step.spec->error_bound(step.direction);
    squares += bound * bound;
  }
  return std::sqrt(squares);
}

}  // namespace hstujit
