#include "runtime/launch/program_layout.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "runtime/launch/workspace.h"

namespace hstujit {

namespace {

// The steps that a tensor is needed in, from the first to the last.
struct Lifetime {
  size_t first = 0, last = 0;
  int64_t bytes = 0;       // of a row
  size_t* slot = nullptr;  // where its number goes
};

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

ProgramLayout::ProgramLayout(const Program& program) : temporaries_(program.temporaries.size()) {
  std::vector<Lifetime> lifetimes;
  for (size_t t = 0; t < temporaries_.size(); ++t) {
    const Argument& temporary = program.temporaries[t];
    const int64_t bytes = temporary.shape[1].bias * static_cast<int64_t>(size_of(temporary.dtype));
    Lifetime lifetime{program.steps.size(), 0, bytes, &temporaries_[t]};
    for (size_t step = 0; step < program.steps.size(); ++step) {
      const auto is_this = [&](int value) { return value == static_cast<int>(program.arguments.size() + t); };
      const std::vector<ProgramOperand>& operands = program.steps[step].operands;
      if (!is_this(program.steps[step].workspace_in) &&
          std::none_of(operands.begin(), operands.end(), [&](const auto& operand) { return is_this(operand.value); })) {
        continue;
      }
      lifetime.first = std::min(lifetime.first, step);
      lifetime.last = step;
    }
    lifetimes.push_back(lifetime);
  }
  // The largest ones first, and of equal ones those that are needed longest, each to the smallest slot that is free
  // then: no slot has to grow.
  std::stable_sort(lifetimes.begin(), lifetimes.end(), [](const Lifetime& a, const Lifetime& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.last - a.first > b.last - b.first;
  });
  std::vector<std::vector<Lifetime>> slots;
  for (const Lifetime& lifetime : lifetimes) {
    const auto is_free = [&](const std::vector<Lifetime>& slot) {
      return std::none_of(slot.begin(), slot.end(), [&](const Lifetime& other) { return meet(lifetime, other); });
    };
    const auto smallest = std::find_if(slots.rbegin(), slots.rend(), is_free);
    *lifetime.slot = static_cast<size_t>(smallest.base() - slots.begin()) - 1;
    if (smallest == slots.rend()) {
      *lifetime.slot = slots.size();
      slots.emplace_back();
    }
    slots[*lifetime.slot].push_back(lifetime);
  }
  count_ = slots.size() + 1;
}

void ProgramLayout::place(Slots& slots) const {
  slots.total = 0;
  for (size_t slot = 0; slot < count_; ++slot) {
    slots.starts[slot] = slots.total;
    slots.total += round_up(slots.bytes[slot], static_cast<int64_t>(Workspace::kAlignment));
  }
}

}  // namespace hstujit
