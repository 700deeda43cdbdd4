// The reference of a direction that is a program: it follows from those of the steps.
#pragma once

#include <functional>
#include <vector>

#include "compiler/spec/program.h"
#include "compiler/spec/reference.h"

namespace hstujit {

class ProgramReference final : public OperatorReference {
 public:
  // Each input is drawn as by the first step that takes it.
  std::vector<HostValue> make_inputs(const OpSpec& spec, Direction direction, const Lengths& lengths,
                                     uint64_t seed) const override;
  // The steps' references one after the other; temporaries are rounded to their type.
  void compute(const OpSpec& spec, Direction direction, const Lengths& lengths,
               std::vector<HostValue>& values) const override;
  // Finds by trials how far an output that follows from differences of temporaries, such as the attention of rows that
  // cancel, moves where those are rounded to the other side.
  std::vector<std::vector<double>> error_variances(const OpSpec& spec, Direction direction,
                                                   const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const override;

 private:
  // Is called when a step's reference has run, with its values; those that later steps read are rounded.
  using StepDone =
      std::function<void(const ProgramStep& step, const Signature& signature, std::vector<HostValue>& own)>;
  // Makes a step's value that of the program, or a part of it.
  static void place(HostValue own, const ProgramOperand& operand, const Argument& whole, HostValue& value);
  // Whether later steps read what this operand of a step is.
  static bool is_passed_on(const Program& program, const ProgramStep& step, const ProgramOperand& operand);
  // The steps' references in order, on the program's values.
  static void run_steps(const Program& program, const Lengths& lengths, std::vector<HostValue>& values,
                        const StepDone& done);
};

}  // namespace hstujit
