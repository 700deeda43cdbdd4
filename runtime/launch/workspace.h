// Device memory that a launch borrows from its caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/support/status.h"
#include "hstujit/hstujit.h"

namespace hstujit {

struct Workspace {
  // Alignment of the driver's allocations, so that a kernel may read its workspace in any way.
  static constexpr size_t kAlignment = HSTUJIT_WORKSPACE_ALIGNMENT;

  void* address = nullptr;
  size_t bytes = 0;
};

// kInvalidArgument for one that is null, misplaced or smaller than the `needed` bytes of `who`.
Status check_workspace(const Workspace& workspace, int64_t needed, std::string_view who);

}  // namespace hstujit
