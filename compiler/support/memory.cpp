#include "compiler/support/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <string>

namespace hstujit {

Status check_memory_left(size_t bytes, std::string_view what) {
  constexpr size_t kMiB = size_t{1} << 20;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    ::munmap(memory, bytes);
    return {};
  }
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return Status(Code::kOutOfMemory,
                fmt::format("{} may need {} MiB more than this process has, and the system does not provide them{}",
                            what, bytes / kMiB,
                            limited ? fmt::format("; its address space is limited to {} MiB (ulimit -v)",
                                                  static_cast<size_t>(limit.rlim_cur) / kMiB)
                                    : std::string()));
}

}  // namespace hstujit
