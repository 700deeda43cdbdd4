// Failures for want of memory, which are failures as any other.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <new>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// Returns the result of `read`; kOutOfMemory with the name of `what` where there is no memory for it.
template <typename Read>
auto within_memory(std::string_view what, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, fmt::format("there is no memory for {}", what));
  }
}

// Status of a thread or a task that ran out of memory: so short a text takes none itself.
inline Status out_of_memory() { return Status(Code::kOutOfMemory, "out of memory"); }

// Whether this process can take so many bytes more; else kOutOfMemory, with what wants them. For libraries that end the
// process when memory runs out: they are asked first whether there is as much as they may need. Nothing is kept for
// them.
Status check_memory_left(size_t bytes, std::string_view what);

}  // namespace hstujit
