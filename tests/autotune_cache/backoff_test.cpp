// When what failed is tried again.
#include "autotune_cache/remote/backoff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hstujit {
namespace {

// Pauses are bounded from below only: a busy machine makes each of them longer.
TEST(BackoffTest, DoublesUntilItWorks) {
  using std::chrono::milliseconds;
  using Clock = Backoff::Clock;
  Backoff backoff(milliseconds(40), milliseconds(100));
  Clock::time_point began;  // before what succeeded
  const auto begins = [&] {
    for (;;) {
      const auto before = Clock::now();
      if (const auto attempt = backoff.begin()) {
        began = before;
        return *attempt;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  const uint64_t first = begins();
  const uint64_t same_time = begins();
  Clock::time_point from = Clock::now();
  backoff.failed(first);
  backoff.failed(same_time);
  const uint64_t second = begins();
  EXPECT_EQ(second, first + 1) << "one failure, seen by two";
  EXPECT_GE(Clock::now() - from, milliseconds(30)) << "40 ms and at least three quarters of it";
  from = began;
  EXPECT_EQ(begins(), second);
  EXPECT_GE(Clock::now() - from, milliseconds(30)) << "one goes alone, for such a time";
  from = Clock::now();
  backoff.failed(second);
  EXPECT_EQ(begins(), second + 1);
  EXPECT_GE(Clock::now() - from, milliseconds(60)) << "80 ms and at least three quarters of it";
  backoff.failed(second + 1);
  backoff.worked();
  EXPECT_TRUE(backoff.begin());
}

}  // namespace
}  // namespace hstujit
