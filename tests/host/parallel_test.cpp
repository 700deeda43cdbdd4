#include "compiler/host/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

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

TEST(Parallel, SeesAProcessor) { EXPECT_GE(available_threads(), 1); }

}  // namespace
}  // namespace hstujit
