// The common part of operators that are programs: signature, work and bounds follow from those of the steps.
#pragma once

#include <optional>
#include <vector>

#include "compiler/spec/program.h"

namespace hstujit {

// The lengths that a step sees: those of its own L.
Lengths lengths_of(const ProgramStep& step, const Lengths& lengths);

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
  // Steps round independently of each other: the root of the sum of the squares of their bounds.
  double error_bound(Direction direction) const final;

 protected:
  // `backward` is left out where there is none.
  explicit ProgramSpec(Program forward, std::optional<Program> backward = {});

 private:
  // Steps of one spec have one name in both directions, and those of different specs have different ones.
  void name_steps();
  // Steps of the direction that every program has.
  const std::vector<ProgramStep>& steps() const;

  Program forward_;
  std::optional<Program> backward_;
};

}  // namespace hstujit
