// A call of an operator: from its arguments to a launch, and back with the outputs.
#pragma once

#include <memory>
#include <span>

#include "python/native/plan.h"

namespace hstujit::torch {

// An operator and what its calls have brought about.
struct Registered {
  Operator op;
  PlanTable plans;
};

// The operator of a number.
Registered& registered(std::size_t index);

// All of these throw a std::exception where the call is refused.

std::shared_ptr<Plan> plan_of(Registered& registered, const Arguments& arguments);
// Makes as many outputs as the schema has.
void launch(const Arguments& arguments, Plan& plan, std::span<OwnedTensor> outputs);
// From the stack of PyTorch's dispatcher, and onto it.
void launch(Registered& registered, StableIValue* stack);

// The kernel of hstujit::_copy: a dense copy of a tensor, which graphs have where a kernel would not read the tensor
// (python/hstujit/torch/_in_place.py).
void copy(StableIValue* stack);

}  // namespace hstujit::torch
