// What operators that are programs have in common: signature, inputs, float64 reference, work and bounds follow from
// those of the steps.
#pragma once

#include <optional>
#include <vector>

#include "compiler/spec/program.h"

namespace hstujit {

class ProgramSpec : public OpSpec {
 public:
  Family family() const final { return Family::kProgram; }
  bool supports(Direction direction) const final { return program(direction) != nullptr; }
  const Program* program(Direction direction) const final;

  Signature signature(Direction direction) const final { return program(direction)->arguments; }
  // The bytes are those of the program's own arguments: temporaries need not be.
  Work work(Direction direction, const Lengths& lengths) const final;
  int64_t small_batch_heads(Direction direction) const final;
  // Each input is drawn as by the first step that takes it.
  std::vector<HostValue> make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const final;
  // The steps' references one after the other; temporaries are rounded to their type.
  void reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const final;
  // Steps round independently of each other: the root of the sum of the squares of their bounds.
  double error_bound(Direction direction) const final;

 protected:
  // `backward` is left out where there is none.
  explicit ProgramSpec(Program forward, std::optional<Program> backward = {})
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

 private:
  Program forward_;
  std::optional<Program> backward_;
};

}  // namespace hstujit
