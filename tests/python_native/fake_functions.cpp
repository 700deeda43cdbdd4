#include "tests/python_native/fake_functions.h"

#include <mutex>
#include <stdexcept>

namespace hstujit::torch {
namespace test {

std::multiset<std::int64_t>& released() {
  static std::multiset<std::int64_t> owners;
  return owners;
}

Functions& fake_functions() {
  static Functions functions;
  return functions;
}

hstujit_torch_callbacks& fake_callbacks() {
  static hstujit_torch_callbacks callbacks = [] {
    hstujit_torch_callbacks made{};
    made.release = [](std::int64_t owner) {
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      released().insert(owner);
    };
    made.capturing = [](std::int64_t) { return 0; };
    made.determinism = [] { return std::int32_t{HSTUJIT_TORCH_ANY}; };
    return made;
  }();
  return callbacks;
}

}  // namespace test

const Functions& functions() { return test::fake_functions(); }
const hstujit_torch_callbacks& callbacks() { return test::fake_callbacks(); }

void check_callback(std::int32_t failed) {
  if (failed) throw std::runtime_error("a callback failed");
}

std::int32_t determinism() { return callbacks().determinism(); }

void check_status(std::int32_t, hstujit_status status) {
  if (status != HSTUJIT_OK) throw std::runtime_error(hstujit_last_error());
}

}  // namespace hstujit::torch
