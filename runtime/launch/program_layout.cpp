#include "runtime/launch/program_layout.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "runtime/launch/workspace.h"

namespace hstujit {

namespace {

// The steps that a tensor is needed in, from the first to the last.
struct Lifetime {
  size_t first = 0, last = 0;
  size_t* slot = nullptr;  // where its number goes
};

}  // namespace

ProgramLayout::ProgramLayout(const Program& program)
    : temporaries_(program.temporaries.size()), steps_(program.steps.size()) {
  std::vector<Lifetime> lifetimes;
  for (size_t t = 0; t < temporaries_.size(); ++t) {
    Lifetime lifetime{program.steps.size(), 0, &temporaries_[t]};
    for (size_t step = 0; step < program.steps.size(); ++step) {
      for (const ProgramOperand& operand : program.steps[step].operands) {
        if (operand.value != static_cast<int>(program.arguments.size() + t)) continue;
        lifetime.first = std::min(lifetime.first, step);
        lifetime.last = step;
      }
    }
    lifetimes.push_back(lifetime);
  }
  for (size_t step = 0; step < steps_.size(); ++step) lifetimes.push_back({step, step, &steps_[step]});
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; });

  std::vector<size_t> free_from;  // by slot: the first step that it is free in
  for (const Lifetime& lifetime : lifetimes) {
    const auto free =
        std::find_if(free_from.begin(), free_from.end(), [&](size_t from) { return from <= lifetime.first; });
    *lifetime.slot = static_cast<size_t>(free - free_from.begin());
    if (free == free_from.end()) free_from.push_back(0);
    free_from[*lifetime.slot] = lifetime.last + 1;
  }
  count_ = free_from.size();
}

void ProgramLayout::place(Slots& slots) const {
  slots.total = 0;
  for (size_t slot = 0; slot < count_; ++slot) {
    slots.starts[slot] = slots.total;
    slots.total += round_up(slots.bytes[slot], static_cast<int64_t>(Workspace::kAlignment));
  }
}

}  // namespace hstujit
