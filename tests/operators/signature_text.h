// A signature as tests of specs compare it.
#pragma once

#include <string>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// "input(16) mat1(L, 8) alpha out(L, 16)".
inline std::string signature_text(const OpSpec& spec, Direction direction = Direction::kForward) {
  std::string text;
  for (const Argument& argument : spec.signature(direction)) {
    text += (text.empty() ? "" : " ") + argument.name;
    if (argument.kind == ArgumentKind::kTensor) text += shape_text(argument);
  }
  return text;
}

}  // namespace hstujit
