#include "autotune_cache/remote/backoff.h"

#include <unistd.h>

#include <algorithm>

namespace hstujit {

// Here a seed must differ between processes: those that failed together shall not come back together.
Backoff::Backoff(Clock::duration first, Clock::duration max)
    : first_(first),
      max_(max),
      random_(static_cast<unsigned>(::getpid()) ^ static_cast<unsigned>(Clock::now().time_since_epoch().count())) {}

std::optional<uint64_t> Backoff::begin() {
  const std::lock_guard lock(mutex_);
  if (delay_ == Clock::duration::zero()) return failures_;
  const auto now = Clock::now();
  if (now < until_) return std::nullopt;
  until_ = now + jittered(delay_);
  return failures_;
}

void Backoff::failed(uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  if (attempt != failures_) return;
  ++failures_;
  delay_ = delay_ == Clock::duration::zero() ? first_ : std::min(2 * delay_, max_);
  until_ = Clock::now() + jittered(delay_);
}

void Backoff::worked() {
  const std::lock_guard lock(mutex_);
  delay_ = Clock::duration::zero();
}

// Three quarters of the time to five quarters.
Backoff::Clock::duration Backoff::jittered(Clock::duration time) {
  return time * std::uniform_int_distribution<int>(192, 320)(random_) / 256;
}

}  // namespace hstujit
