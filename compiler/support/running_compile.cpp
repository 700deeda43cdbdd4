#include "compiler/support/running_compile.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>

namespace hstujit {

namespace {

constexpr auto kLongestWait = std::chrono::minutes(1);
// Functions that were registered last with exit() run first. NVRTC is loaded late, and makes some of its static objects
// in the first compiles: so the wait is registered anew, before and after each of those.
constexpr int kRegistrations = 64;
constexpr int kFirstRegistrations = 1000;  // of a first compile
constexpr auto kEach = std::chrono::milliseconds(1);

// Compiles of one process: a forked child has one thread of its parent's, which compiles nothing there.
struct Compiles {
  std::mutex mutex;
  std::condition_variable ended;
  int running = 0, registrations = 0;
  bool exits = false;
};

// Never destroyed. A child's are others: the lock of its parent's may be held for ever, and what runs there never ends.
Compiles* current = new Compiles;
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] { current = new Compiles; });

Compiles& compiles() { return *current; }

void wait_at_exit() {
  std::unique_lock lock(compiles().mutex);
  compiles().exits = true;
  compiles().ended.wait_for(lock, kLongestWait, [] { return compiles().running == 0; });
}

// Under the lock.
void register_wait() {
  if (compiles().registrations >= kRegistrations) return;
  if (std::atexit(&wait_at_exit) == 0) ++compiles().registrations;
}

}  // namespace

RunningCompile::RunningCompile() {
  const std::lock_guard lock(compiles().mutex);
  if (compiles().exits) return;
  counted_in_ = &compiles();
  register_wait();
  ++compiles().running;
}

RunningCompile::~RunningCompile() {
  if (counted_in_ != &compiles()) return;
  const std::lock_guard lock(compiles().mutex);
  if (!compiles().exits) register_wait();
  --compiles().running;
  compiles().ended.notify_all();
}

Status RunningCompile::status() const {
  return counted_in_ != nullptr ? Status() : Status(Code::kCompileFailed, "the process ends: nothing more is compiled");
}

FirstCompile::FirstCompile() {
  const auto work = [this] {
    for (int i = 0; i < kFirstRegistrations && !ended_; ++i) {
      {
        const std::lock_guard lock(compiles().mutex);
        if (compiles().exits || std::atexit(&wait_at_exit) != 0) return;
      }
      std::this_thread::sleep_for(kEach);
    }
  };
  try {
    registering_ = std::thread(work);
  } catch (const std::system_error&) {  // no thread is to be had
  }
}

FirstCompile::~FirstCompile() {
  ended_ = true;
  if (registering_.joinable()) registering_.join();
}

}  // namespace hstujit
