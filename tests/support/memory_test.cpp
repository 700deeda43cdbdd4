#include "compiler/support/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/little_memory.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

TEST(Memory, WhatIsNotThereIsAFailure) {
  const auto take = [](size_t bytes) {
    return within_memory("the list", [&]() -> Result<size_t> { return std::vector<char>(bytes).size(); });
  };
  EXPECT_EQ(*take(10), 10u);
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  EXPECT_TRUE(with_little_memory([&] {
    const Status status = take(size_t{1} << 30).status();
    return status.code() == Code::kOutOfMemory && status.message() == "there is no memory for the list";
  }));
}

TEST(Memory, WhetherThereIsEnoughIsKnownBefore) {
  EXPECT_TRUE(check_memory_left(size_t{1} << 20, "it").ok());
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  EXPECT_TRUE(with_little_memory([] {
    const Status status = check_memory_left(size_t{256} << 20, "the compiler");
    return check_memory_left(size_t{16} << 20, "it").ok() && status.code() == Code::kOutOfMemory &&
           status.message().starts_with("the compiler may need 256 MiB more than this process has") &&
           status.message().ends_with(" MiB (ulimit -v)");
  }));
}

}  // namespace
}  // namespace hstujit
