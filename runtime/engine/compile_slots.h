// How many compiles are under way at once. NVRTC needs memory for each of them; threads beyond the count wait, in the
// order that they came in, so that a launch's compile is not overtaken by candidates of the tuner.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "compiler/support/log.h"

namespace hstujit {

class CompileSlots {
  // Shared by all that hold a slot or wait for one. A forked child has none of its parent's threads to give theirs
  // back: the condition variable, whose end waits for those that wait, is not destroyed there.
  struct State {
    explicit State(int count) : admitted(count) {}

    std::mutex mutex;
    std::condition_variable changed;
    int64_t arrived = 0;
    int64_t admitted;  // of all that ever arrived: the count, and one more for each that has left
  };

 public:
  explicit CompileSlots(int count) : state_(std::make_shared<State>(count)) {}

  // A slot, from its construction, which waits for it, to its end.
  class Hold {
   public:
    explicit Hold(const CompileSlots& slots) : state_(slots.state_) {
      std::unique_lock lock(state_->mutex);
      const int64_t mine = state_->arrived++;
      state_->changed.wait(lock, [&] { return mine < state_->admitted; });
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      {
        const std::lock_guard lock(state_->mutex);
        ++state_->admitted;
      }
      state_->changed.notify_all();
    }

   private:
    const DeferredEvents deferred_;  // a sink may want a slot
    const std::shared_ptr<State> state_;
  };

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace hstujit
