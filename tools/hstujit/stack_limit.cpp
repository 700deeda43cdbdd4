#include "tools/hstujit/stack_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace hstujit {

namespace {

// Compiles with NVRTC 13.0 need 112 KiB, everything else 80 KiB. Arguments and environment lie on the first thread's
// stack, too, and take up to a quarter of it.
constexpr rlim_t kLeastKiB = 512;

}  // namespace

Status check_stack_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur / 1024 >= kLeastKiB)
    return {};
  return Status(Code::kOutOfMemory, fmt::format("the stack limit is {} KiB; it must be at least {} KiB, as after "
                                                "ulimit -s {}",
                                                limit.rlim_cur / 1024, kLeastKiB, kLeastKiB));
}

}  // namespace hstujit
