// What surrounds a call: the context of the library, Python where it is there, and failures that a caller is told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hstujit/hstujit.h"

extern "C" {

// Called without a lock of this library. One that fails returns NULL or 1, and has called hstujit_torch_set_error.
struct hstujit_torch_callbacks {
  hstujit_context* (*context)();  // of calls from now on; it stays at least until the thread's next call of this
  // Repeats an allocation that has failed, so that PyTorch's own exception says why.
  std::int32_t (*allocate)(std::int64_t bytes, std::int32_t device);
  std::int32_t (*warn)(const char* text);
  std::int32_t (*derivative_follows)();  // 1: autograd records the call that this thread makes
};

}  // extern "C"

namespace hstujit::torch {

// Null members where there is no Python.
const hstujit_torch_callbacks& callbacks();

// Throws with what a callback said where it failed.
void check_callback(bool failed);

// The context of new plans. Without Python one of the environment's options, made by the first call.
hstujit_context* context();

void warn(const std::string& text);
bool derivative_follows();

// Throws a std::exception with the sentence, whose status Python asks for.
[[noreturn]] void throw_failure(std::int32_t status, std::string sentence);

// Throws unless the status is HSTUJIT_OK. `name` is the operator's function, for PyTorch's words about kernels that
// torch.use_deterministic_algorithms does not allow.
void check_status(std::string_view name, hstujit_status status);

// Whether the library's last failure on this thread is that no kernel is deterministic.
bool is_not_deterministic();

// PyTorch's words about an operator of which that is so.
std::string without_determinism(std::string_view name);

}  // namespace hstujit::torch
