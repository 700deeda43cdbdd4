#include "runtime/launch/workspace.h"

#include <fmt/format.h>

namespace hstujit {

Status check_workspace(const Workspace& workspace, int64_t needed, std::string_view who) {
  const bool placed =
      workspace.address != nullptr && reinterpret_cast<uintptr_t>(workspace.address) % Workspace::kAlignment == 0;
  if (needed == 0 || (placed && workspace.bytes >= static_cast<size_t>(needed))) return {};
  const std::string given = workspace.address == nullptr
                                ? "a null pointer"
                                : fmt::format("{} with {} bytes", workspace.address, workspace.bytes);
  return Status(Code::kInvalidArgument,
                fmt::format("workspace is {}; {} needs {} bytes of device memory for these sizes, at a multiple of {} "
                            "(workspace_size says how many)",
                            given, who, needed, Workspace::kAlignment));
}

}  // namespace hstujit
