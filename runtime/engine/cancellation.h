// How a caller ends an operation that is under way.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "compiler/support/status.h"

namespace hstujit {

// HSTUJIT_CANCELLED. It is not an enumerator of Code because the digest of every kernel contains the header of Code.
inline constexpr Code kCancelled{16};

// Copies share one state. Any thread may ask, and any thread may cancel.
class Cancellation {
 public:
  // Belongs to work that nobody can cancel.
  Cancellation() = default;
  // `flag` belongs to the caller, outlives the operation and is not 0 once the operation is to end; it may be null.
  explicit Cancellation(const volatile int* flag)
      : flag_(flag), cancelled_(std::make_shared<std::atomic<bool>>(false)) {}

  bool is_possible() const { return cancelled_ != nullptr; }
  void cancel() const {
    if (cancelled_) *cancelled_ = true;
  }
  bool requested() const {
    return (cancelled_ && *cancelled_) || (flag_ != nullptr && __atomic_load_n(flag_, __ATOMIC_RELAXED) != 0);
  }
  // `what` names the operation: "prewarm".
  Status status(const std::string& what) const {
    return {kCancelled, what + " was cancelled; what it had finished is kept"};
  }

 private:
  const volatile int* flag_ = nullptr;
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace hstujit
