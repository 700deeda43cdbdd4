// Checks that no step of a program destroys what an earlier step gave.
#pragma once

#include <string>

#include "compiler/spec/program.h"

namespace hstujit {

// A sentence about the first fault of these, empty where there is none:
//   - a step writes elements of an output whose final values an earlier step has written, and does not add to them. A
//     step adds where it reads the same elements as the input that its output may lie in (Argument::in_place).
//   - an output lends its memory (ProgramValue::for_now, workspace_in) after its final values were written, or no step
//     writes final values afterwards.
//   - no step writes an output.
// Temporaries may be written anew.
std::string find_lost_write(const Program& program);

}  // namespace hstujit
