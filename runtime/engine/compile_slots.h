// How many compiles are under way at once. NVRTC needs memory for each of them; threads beyond the count wait, in the
// order that they came in, so that a launch's compile is not overtaken by candidates of the tuner.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "compiler/support/log.h"

namespace hstujit {

class CompileSlots {
 public:
  explicit CompileSlots(int count) : admitted_(count) {}

  // A slot, from its construction, which waits for it, to its end.
  class Hold {
   public:
    explicit Hold(CompileSlots& slots) : slots_(slots) {
      std::unique_lock lock(slots_.mutex_);
      const int64_t mine = slots_.arrived_++;
      slots_.changed_.wait(lock, [&] { return mine < slots_.admitted_; });
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      {
        const std::lock_guard lock(slots_.mutex_);
        ++slots_.admitted_;
      }
      slots_.changed_.notify_all();
    }

   private:
    const DeferredEvents deferred_;  // a sink may want a slot
    CompileSlots& slots_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t arrived_ = 0;
  int64_t admitted_;  // of all that ever arrived: the count, and one more for each that has left
};

}  // namespace hstujit
