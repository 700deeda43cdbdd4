#include "compiler/support/integers.h"

#include <gtest/gtest.h>

#include <limits>

namespace hstujit {
namespace {

TEST(Integers, DivisionAndRounding) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(1, 4), 1);
  EXPECT_EQ(ceil_div(4, 4), 1);
  EXPECT_EQ(ceil_div(5, 4), 2);
  EXPECT_EQ(ceil_div(-1, 4), 0);
  EXPECT_EQ(ceil_div(7, std::numeric_limits<int>::max()), 1);
  EXPECT_EQ(ceil_div(std::numeric_limits<int>::max(), 2), 1 << 30);
  EXPECT_EQ(round_up(0, 8), 0);
  EXPECT_EQ(round_up(8, 8), 8);
  EXPECT_EQ(round_up(9, 8), 16);
  EXPECT_EQ(round_down(15, 8), 8);
  EXPECT_EQ(round_down(16, 8), 16);
}

}  // namespace
}  // namespace hstujit
