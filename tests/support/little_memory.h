// A process whose address space is nearly used up, for tests of what happens then.
#pragma once

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "tests/support/sanitized.h"

namespace hstujit {

inline bool memory_can_be_limited() { return !kSanitized; }

// Whether `body`, run in a process that can take no more than `left` bytes, says true; false when that process dies.
template <typename Body>
bool with_little_memory(const Body& body, size_t left = size_t{64} << 20) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::malloc_trim(0);  // what the parent has freed
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t max = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + left;
    const rlimit limit = {max, max};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    try {
      ::_exit(body() ? 0 : 1);
    } catch (...) {
      ::_exit(3);  // and not on with the parent's tests
    }
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace hstujit
