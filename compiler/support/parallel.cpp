#include "compiler/support/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "compiler/support/integers.h"
#include "compiler/support/threads.h"

namespace hstujit {

// The standard library counts all processors of the machine, also those that this process may not run on.
int available_threads() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

int threads_for(int64_t work, int64_t least) {
  return static_cast<int>(std::clamp<int64_t>(work / least, 1, available_threads()));
}

// Threads live for one call: a launch takes far longer than starting them, and a process that forks or unloads the
// library meets no pool.
void parallel_for(size_t count, int threads, const std::function<void(int worker, size_t i)>& body) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&](int worker) {
    try {
      for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < count;
           i = next.fetch_add(1, std::memory_order_relaxed)) {
        body(worker, i);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  {
    const int workers = static_cast<int>(std::min<size_t>(std::max(threads, 1), count));
    const std::vector<std::jthread> others = start_threads(static_cast<size_t>(std::max(workers - 1, 0)),
                                                           [&](size_t other) { work(static_cast<int>(other) + 1); });
    work(0);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void parallel_blocks(size_t count, size_t block, const std::function<void(size_t begin, size_t end)>& body) {
  const size_t blocks = ceil_div(count, block);
  parallel_for(blocks, threads_for(static_cast<int64_t>(blocks), 1),
               [&](int, size_t number) { body(number * block, std::min(count, (number + 1) * block)); });
}

}  // namespace hstujit
