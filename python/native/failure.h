// Refused calls: a std::exception with the library's sentence, and its status for Python.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hstujit/hstujit.h"

namespace hstujit::torch {

// Not a hstujit_status: a callback of Python has failed, and keeps its exception.
inline constexpr std::int32_t kFailedInPython = -1;

// The last failure of this thread.
struct Failure {
  std::string sentence;
  std::int32_t status = HSTUJIT_OK;
};
Failure& failure();

[[noreturn]] void throw_failure(std::int32_t status, std::string sentence);

// Throws unless the status is HSTUJIT_OK. `name` is the operator's function, for PyTorch's words about kernels that
// torch.use_deterministic_algorithms does not allow.
void check_status(std::string_view name, hstujit_status status);

// Whether the library's last failure on this thread is that no kernel is deterministic.
bool is_not_deterministic();

}  // namespace hstujit::torch
