// Limits of this process's control group, which a container has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hstujit {

// Bytes of memory that the process's control group and those around it may have, by either version of cgroups; nothing
// where none has a limit, or where they cannot be read. Beyond it the kernel kills the process.
//
// `proc` and `cgroups` are where the two file systems are mounted.
std::optional<uint64_t> cgroup_memory_limit(const std::filesystem::path& proc = "/proc",
                                            const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace hstujit
