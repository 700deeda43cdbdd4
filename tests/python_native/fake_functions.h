// PyTorch's functions and Python's callbacks, as the tests of this folder have them.
#pragma once

#include <cstdint>
#include <set>

#include "python/native/arguments.h"
#include "python/native/plan.h"

namespace hstujit::torch::test {

// Owners that were given back.
std::multiset<std::int64_t>& released();

// The functions and callbacks, for a test to change.
Functions& fake_functions();
hstujit_torch_callbacks& fake_callbacks();

}  // namespace hstujit::torch::test
