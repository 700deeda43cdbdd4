// The steps of a program as text.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/spec/program.h"

namespace hstujit {

// "layer_norm forward: out=normed", "hstu_attention forward: q=normed[32] alpha=1": arguments that are called otherwise
// in the program, columns of values, "weight=weights(1)" of those that are stacked, numbers, and the value that has the
// workspace.
inline std::vector<std::string> steps_of(const Program& program) {
  std::vector<std::string> texts;
  for (const ProgramStep& step : program.steps) {
    std::string text = fmt::format("{} {}:", step.name, to_string(step.direction));
    const Signature& signature = step.signature;
    EXPECT_EQ(signature.size(), step.operands.size());
    for (size_t i = 0; i < signature.size(); ++i) {
      const ProgramOperand& operand = step.operands[i];
      if (operand.is_number()) {
        text += fmt::format(" {}={}", signature[i].name, operand.number);
        continue;
      }
      const std::string& value = program.value(operand.value).name;
      if (operand.is_whole() && value == signature[i].name) continue;
      text += fmt::format(" {}={}", signature[i].name, value);
      if (operand.index >= 0) text += fmt::format("({})", operand.index);
      if (operand.columns) text += fmt::format("[{}]", operand.first_column);
    }
    if (step.workspace_in != ProgramStep::kOwnWorkspace) {
      text += fmt::format(" workspace={}", program.value(step.workspace_in).name);
    }
    texts.push_back(text);
  }
  return texts;
}

}  // namespace hstujit
