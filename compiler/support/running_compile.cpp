#include "compiler/support/running_compile.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>

namespace hstujit {

namespace {

constexpr auto kLongestWait = std::chrono::minutes(1);
// What was registered last with exit() runs first. NVRTC is loaded late, and makes some of its static objects in the
// first compiles: so the wait is registered anew, before and after each of those.
constexpr int kRegistrations = 64;
constexpr int kFirstRegistrations = 1000;  // of a first compile
constexpr auto kEach = std::chrono::milliseconds(1);

struct Compiles {
  std::mutex mutex;
  std::condition_variable ended;
  int running = 0, registrations = 0;
  bool exits = false;
};

Compiles& compiles() {
  static auto& all = *new Compiles;  // never destroyed
  return all;
}

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
  may_run_ = !compiles().exits;
  if (!may_run_) return;
  register_wait();
  ++compiles().running;
}

RunningCompile::~RunningCompile() {
  if (!may_run_) return;
  const std::lock_guard lock(compiles().mutex);
  if (!compiles().exits) register_wait();
  --compiles().running;
  compiles().ended.notify_all();
}

Status RunningCompile::status() const {
  return may_run_ ? Status() : Status(Code::kCompileFailed, "the process ends: nothing more is compiled");
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
