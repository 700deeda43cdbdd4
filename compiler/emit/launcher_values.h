// Arguments that the program around a kernel passes to it: text of C++ expressions and declarations, from the signature
// and the plan. Names are those of launcher_support.cpp.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// `struct Chosen`, of what the signature leaves open; empty when it leaves nothing.
std::string print_choices(const Signature& signature);

// A variable of the argument's name: a scalar, or the device memory of a tensor with its contents.
std::string declare_argument(const Signature& signature, const Argument& argument);

// A member of Params.
std::string slot_value(const Signature& signature, const ParamSlot& slot);

std::string product_text(const Signature& signature, const std::vector<GridFactor>& factors);

}  // namespace hstujit
