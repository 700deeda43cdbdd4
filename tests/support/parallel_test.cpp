#include "compiler/support/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "compiler/support/threads.h"

namespace hstujit {
namespace {

TEST(Parallel, CallsEachIndexOnce) {
  for (const int threads : {1, 3, 64}) {
    for (const size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      std::atomic<int> largest_worker{0};
      parallel_for(count, threads, [&](int worker, size_t i) {
        calls[i]++;
        if (worker > largest_worker) largest_worker = worker;
      });
      for (const auto& called : calls) EXPECT_EQ(called, 1);
      EXPECT_LT(largest_worker, threads);
    }
  }
}

TEST(Parallel, StartsNoThreadForLittleWork) {
  const int all = available_threads();
  EXPECT_EQ(threads_for(0, 64), 1);
  EXPECT_EQ(threads_for(127, 64), 1);
  EXPECT_EQ(threads_for(128, 64), std::min(2, all));
  EXPECT_EQ(threads_for(int64_t{1} << 40, 64), all);
}

// On a thread of its own an exception would end the process.
TEST(Parallel, WhatABodyThrowsComesOutOfTheCall) {
  for (const int threads : {1, 4}) {
    std::atomic<size_t> calls{0};
    EXPECT_THROW(parallel_for(size_t{1} << 40, threads,
                              [&](int, size_t) {
                                if (++calls >= 100) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
    EXPECT_LT(calls, 200u) << "nothing is begun behind it";
  }
}

// As with ulimit -u. The limit does not bind root, so that another user is asked.
TEST(Threads, WithoutAnyFewerDoTheWork) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kNobody = 65534;
    const rlimit none = {0, 0};
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(2);
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(2);
    int calls = 0;
    if (start_thread([] {})) ::_exit(3);
    if (!start_threads(4, [](size_t) {}).empty()) ::_exit(4);
    parallel_for(10, 8, [&](int, size_t) { ++calls; });
    if (calls != 10) ::_exit(5);
    ::_exit(start_async([] { return 7; }).get() == 7 ? 0 : 6);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST(Threads, EachGetsItsNumber) {
  std::atomic<int> sum{0};
  {
    const auto threads = start_threads(4, [&](size_t number) { sum += 1 << number; });
  }
  EXPECT_EQ(sum, 15);
  EXPECT_EQ(start_async([] { return 7; }).get(), 7);
}

TEST(Parallel, CountsTheProcessorsThatThisProcessMayUse) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(available_threads(), CPU_COUNT(&allowed));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(available_threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

}  // namespace
}  // namespace hstujit
