// Where the temporaries of a program lie in the workspace of a launch, and the workspaces of its steps.
//
// Tensors that are never needed at the same time have one slot. Which share one follows from the steps, once; how large
// a slot is follows from the sizes of a launch, and is that of the largest of its tensors. The steps' own workspaces,
// whose sizes differ much and are not known before a launch, have a slot of their own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/spec/program.h"

namespace hstujit {

class ProgramLayout {
 public:
  static constexpr size_t kMaxSlots = 16;

  // Bytes of each slot, as they grow, and where it begins.
  struct Slots {
    std::array<int64_t, kMaxSlots> bytes{};
    std::array<int64_t, kMaxSlots> starts{};
    int64_t total = 0;
  };

  explicit ProgramLayout(const Program& program);

  size_t slot_of_temporary(size_t temporary) const { return temporaries_[temporary]; }  // by number
  size_t slot_of_steps() const { return count_ - 1; }
  size_t count() const { return count_; }

  // From the bytes of each slot: its start, at multiples of the workspace's alignment, and the total.
  void place(Slots& slots) const;

 private:
  std::vector<size_t> temporaries_;
  size_t count_ = 0;
};

}  // namespace hstujit
