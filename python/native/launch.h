// A call of an operator: from its arguments to a launch, and back with the outputs.
#pragma once

#include "python/native/plan.h"

namespace hstujit::torch {

// An operator and what its calls have brought about.
struct Registered {
  Operator op;
  PlanTable plans;
};

// From the stack of PyTorch's dispatcher, and onto it. Throws a std::exception where the call is refused.
void launch(Registered& registered, StableIValue* stack);

}  // namespace hstujit::torch
