#include "compiler/spec/sequence_operator.h"

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

Argument offsets_argument(std::string name, DataType dtype, std::string_view axis) {
  Argument argument;
  argument.name = std::move(name);
  argument.dtype = dtype;
  argument.shape = {Dimension::of("B", 1)};
  argument.alignment = static_cast<int>(size_of(dtype));
  argument.doc = "first row of each sequence, then the number of rows";
  argument.semantic = Semantic::kOffsets;
  argument.axis = axis;
  return argument;
}

Argument counts_argument(std::string name, DataType dtype, std::string_view axis, std::string_view doc) {
  Argument argument = offsets_argument(std::move(name), dtype, axis);
  argument.shape = {Dimension::of("B")};
  argument.doc = doc;
  argument.semantic = Semantic::kCounts;
  return argument;
}

Argument integer_argument(std::string name, std::string_view doc, int64_t max) {
  Argument argument;
  argument.name = std::move(name);
  argument.kind = ArgumentKind::kInt;
  argument.doc = doc;
  argument.min = 0;
  argument.max = max;
  return argument;
}

HostValue uniform_rows(const Lengths& lengths) {
  const std::vector<int64_t>& rows = lengths.rows_of(kQueryAxis);
  return {{}, rows.empty() ? 0.0 : static_cast<double>(rows.front())};
}

namespace {

Program one_step(OpSpecPtr spec, const std::map<std::string, ProgramValue>& operands) {
  ProgramBuilder program;
  program.step(std::move(spec), Direction::kForward, operands);
  return program.finish();
}

}  // namespace

GradientProgram::GradientProgram(OpSpecPtr spec, const std::map<std::string, ProgramValue>& operands)
    : ProgramSpec({}, one_step(std::move(spec), operands)) {}

std::string_view GradientProgram::op() const { return program(Direction::kBackward)->steps.front().spec->op(); }

nlohmann::ordered_json GradientProgram::to_json() const {
  return program(Direction::kBackward)->steps.front().spec->to_json();
}

Signature SequenceSpec::signature(Direction direction) const {
  return by_program(direction) ? gradient_->signature(direction) : RowSpec::signature(direction);
}

Work SequenceSpec::work(Direction direction, const Lengths& lengths) const {
  return by_program(direction) ? gradient_->work(direction, lengths) : RowSpec::work(direction, lengths);
}

std::vector<HostValue> SequenceSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  return by_program(direction) ? gradient_->make_inputs(direction, lengths, seed)
                               : RowSpec::make_inputs(direction, lengths, seed);
}

void SequenceSpec::reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const {
  if (by_program(direction)) return gradient_->reference(direction, lengths, values);
  reference_rows(direction, lengths, values);
}

double SequenceSpec::error_bound(Direction direction) const {
  return by_program(direction) ? gradient_->error_bound(direction) : RowSpec::error_bound(direction);
}

}  // namespace hstujit
