// A call of an operator: from the stack of PyTorch's dispatcher to a launch, and back with the outputs.
#pragma once

#include "python/native/plan.h"

namespace hstujit::torch {

// Throws std::runtime_error where the call is refused.
void launch(std::int32_t index, const Operator& op, PlanTable& plans, StableIValue* stack);

}  // namespace hstujit::torch
