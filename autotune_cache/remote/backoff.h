// For how long something that failed is left alone: twice as long each time, and not by all processes in step.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

namespace hstujit {

class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  Backoff(Clock::duration first, Clock::duration max);

  // Nothing while it is left alone; else what failed() wants to know. The first one after such a time goes alone: the
  // others wait for what it finds, another such time at most.
  std::optional<uint64_t> begin();

  // Counts one of several requests that began before the same failure.
  void failed(uint64_t attempt);
  void worked();

 private:
  Clock::duration jittered(Clock::duration time);

  const Clock::duration first_;
  const Clock::duration max_;
  std::mutex mutex_;
  std::minstd_rand random_;
  uint64_t failures_ = 0;
  Clock::duration delay_{0};  // 0: it works
  Clock::time_point until_;
};

}  // namespace hstujit
