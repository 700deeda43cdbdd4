// What could not be read for want of memory is a failure as any other.
#pragma once

#include <fmt/format.h>

#include <new>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// What `read` gives; kOutOfMemory with the name of what it reads where there is no memory for it.
template <typename Read>
auto within_memory(std::string_view what, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, fmt::format("there is no memory for {}", what));
  }
}

}  // namespace hstujit
