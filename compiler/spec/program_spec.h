// What operators that are programs have in common: signature, inputs, float64 reference, work and bounds follow from
// those of the steps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/spec/program.h"

namespace hstujit {

class ProgramSpec : public OpSpec {
 public:
  ~ProgramSpec() override;

  Family family() const final { return Family::kProgram; }
  bool supports(Direction direction) const final { return program(direction) != nullptr; }
  const Program* program(Direction direction) const final;

  Signature signature(Direction direction) const final { return program(direction)->arguments; }
  // Operations of all steps. Bytes of the program's own arguments, since temporaries need not be; where there are none,
  // those of the steps, and what several steps read counts once.
  Work work(Direction direction, const Lengths& lengths) const final;
  int64_t small_batch_heads(Direction direction) const final;
  // As the first step that has other axes than L.
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const final;
  // As the first step that has the symbol.
  std::map<std::string, int64_t> generated_sizes(const Lengths& lengths) const final;
  // Each input is drawn as by the first step that takes it.
  std::vector<HostValue> make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const final;
  // The steps' references one after the other; temporaries are rounded to their type.
  void reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const final;
  // Steps round independently of each other: the root of the sum of the squares of their bounds.
  double error_bound(Direction direction) const final;
  // Of an output that follows from differences of temporaries, such as the attention of rows that cancel: how far it
  // moves where those are rounded to the other side, by trials.
  std::vector<std::vector<double>> error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const final;

 protected:
  // `backward` is left out where there is none.
  explicit ProgramSpec(Program forward, std::optional<Program> backward = {});

 private:
  // Steps of one spec have one name in both directions, and those of different specs have different ones.
  void name_steps();
  // What is done when a step's reference has run: to its values, those that later steps read being rounded.
  using StepDone =
      std::function<void(const ProgramStep& step, const Signature& signature, std::vector<HostValue>& own)>;
  // Makes a step's value that of the program, or a part of it.
  static void place(HostValue own, const ProgramOperand& operand, const Argument& whole, HostValue& value);
  // Whether later steps read what this operand of a step is.
  static bool is_passed_on(const Program& program, const ProgramStep& step, const ProgramOperand& operand);
  // The steps' references in order, on the program's values.
  void run_steps(Direction direction, const Lengths& lengths, std::vector<HostValue>& values,
                 const StepDone& done) const;
  // Of the direction that every program has.
  const std::vector<ProgramStep>& steps() const;

  Program forward_;
  std::optional<Program> backward_;
};

}  // namespace hstujit
