#include "compiler/spec/program_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace hstujit {

namespace {

// The elements of a value that a step has as one of its arguments: all of them, or neighbouring columns of one part.
struct Region {
  int64_t index = -1;  // of the first axis; -1: every one
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();

  Region() = default;
  Region(const ProgramOperand& operand, const Argument& argument) : index(operand.index) {
    if (!operand.columns) return;
    begin = end = operand.first_column;
    int64_t columns = 1;
    for (size_t axis = argument.shape.size() > 1 ? 1 : 0; axis < argument.shape.size(); ++axis)
      columns *= argument.shape[axis].bias;
    end += columns;
  }

  bool operator==(const Region&) const = default;
  bool meets(const Region& other) const {
    return (index < 0 || other.index < 0 || index == other.index) && begin < other.end && other.begin < end;
  }
};

struct Write {
  Region region;
  bool final = false;
  bool adds = false;
  std::string step;
};

// Whether the step reads the elements that it writes as `output`, each before it writes it.
bool adds_to(const ProgramStep& step, size_t output) {
  const Argument& argument = step.signature[output];
  const int input = argument.in_place.empty() ? -1 : find_argument(step.signature, argument.in_place);
  if (input < 0) return false;
  const auto at = static_cast<size_t>(input);
  const ProgramOperand& to = step.operands[output];
  return step.operands[at].value == to.value && Region(step.operands[at], step.signature[at]) == Region(to, argument);
}

// The writes of a value, in the order of the steps.
std::vector<Write> writes_of(const Program& program, int value) {
  std::vector<Write> writes;
  for (const ProgramStep& step : program.steps) {
    if (step.workspace_in == value) writes.push_back({{}, false, false, step.name});
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const ProgramOperand& operand = step.operands[i];
      if (operand.value != value || step.signature[i].role != ArgumentRole::kOutput) continue;
      writes.push_back({Region(operand, step.signature[i]), !operand.for_now, adds_to(step, i), step.name});
    }
  }
  return writes;
}

std::string find_lost_write_of(const std::string& name, const std::vector<Write>& writes) {
  if (writes.empty()) return fmt::format("no step writes {}", name);
  for (auto write = writes.begin(); write != writes.end(); ++write) {
    const auto is_lost = [&](const Write& other) { return other.final && other.region.meets(write->region); };
    const auto earlier = std::find_if(writes.begin(), write, is_lost);
    if (earlier != write && !write->adds) {
      return fmt::format("{} writes {} over what {} has written; it must add to that, or write other elements",
                         write->step, name, earlier->step);
    }
    if (!write->final && std::none_of(write, writes.end(), is_lost)) {
      return fmt::format("{} writes {} for now, and no later step writes its final values", write->step, name);
    }
  }
  return {};
}

}  // namespace

std::string find_lost_write(const Program& program) {
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Argument& argument = program.arguments[i];
    if (argument.role != ArgumentRole::kOutput) continue;
    std::string mistake = find_lost_write_of(argument.name, writes_of(program, static_cast<int>(i)));
    if (!mistake.empty()) return mistake;
  }
  return {};
}

}  // namespace hstujit
