#include "compiler/spec/gradient_program.h"

#include "compiler/support/json.h"

namespace hstujit {

namespace {

Program one_step(OpSpecPtr spec, const std::map<std::string, ProgramValue>& operands) {
  ProgramBuilder program;
  program.step(std::move(spec), Direction::kForward, operands);
  return program.finish();
}

}  // namespace

GradientProgram::GradientProgram(OpSpecPtr spec, const std::map<std::string, ProgramValue>& operands)
    : GradientProgram(one_step(std::move(spec), operands)) {}

std::string_view GradientProgram::op() const { return program(Direction::kBackward)->steps.front().spec->op(); }

Json GradientProgram::to_json() const { return program(Direction::kBackward)->steps.front().spec->to_json(); }

}  // namespace hstujit
