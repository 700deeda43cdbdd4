// Asks the surroundings for the context of calls, and Python, where it is there, for what it does in its own way.
#pragma once

#include <cstdint>

#include "hstujit/hstujit.h"

extern "C" {

// Called without a lock of this library. One that fails returns NULL or 1, and has called hstujit_torch_set_error.
struct hstujit_torch_callbacks {
  hstujit_context* (*context)();  // of calls from now on; it stays at least until the thread's next call of this
  // Repeats an allocation that has failed, so that PyTorch's own exception says why.
  std::int32_t (*allocate)(std::int32_t rank, const std::int64_t* sizes, std::int32_t dtype, std::int32_t device);
  std::int32_t (*warn)(const char* text);
};

}  // extern "C"

namespace hstujit::torch {

// Null members where there is no Python.
const hstujit_torch_callbacks& callbacks();

// Throws with what a callback said where it failed.
void check_callback(bool failed);

// The context of new plans. Without Python one of the environment's options, made by the first call.
hstujit_context* context();

void warn(const char* text);

}  // namespace hstujit::torch
