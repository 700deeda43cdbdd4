#include "runtime/capi/callbacks.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "hstujit/hstujit.h"

namespace hstujit::capi {
namespace {

constexpr uint64_t kStopped = uint64_t{1} << 63;

// How many calls there are, and kStopped.
std::atomic<uint64_t> calls{0};
thread_local uint64_t calls_of_this_thread = 0;

// A child has one thread of its parent's.
[[maybe_unused]] const int at_fork =
    pthread_atfork(nullptr, nullptr, [] { calls = (calls & kStopped) | calls_of_this_thread; });

bool enter() {
  ++calls_of_this_thread;
  return (calls.fetch_add(1) & kStopped) == 0;
}

}  // namespace

Callback::Callback() : is_open_(enter()) {}

Callback::~Callback() {
  --calls_of_this_thread;
  if ((calls.fetch_sub(1) & kStopped) != 0) calls.notify_all();
}

}  // namespace hstujit::capi

extern "C" void hstujit_callbacks_stop(void) {
  using namespace hstujit::capi;
  uint64_t seen = calls.fetch_or(kStopped) | kStopped;
  while (seen != (kStopped | calls_of_this_thread)) {
    calls.wait(seen);
    seen = calls.load();
  }
}
