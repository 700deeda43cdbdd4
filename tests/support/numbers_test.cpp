#include "compiler/support/numbers.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(WholeNumber, IsOfDecimalDigits) {
  EXPECT_EQ(whole_number("0"), 0u);
  EXPECT_EQ(whole_number("010"), 10u);
  EXPECT_EQ(whole_number("18446744073709551615"), ~uint64_t{0});
  for (const char* text : {"", "-0", "-1", "+1", " 1", "1 ", "0x10", "1.0", "1e3", "18446744073709551616"})
    EXPECT_FALSE(whole_number(text)) << text;
}

TEST(WholeSize, TakesUnits) {
  EXPECT_EQ(whole_size("0"), 0);
  EXPECT_EQ(whole_size("4096"), 4096);
  EXPECT_EQ(whole_size("1B"), 1);
  EXPECT_EQ(whole_size("512K"), 512 << 10);
  EXPECT_EQ(whole_size("2MiB"), 2 << 20);
  EXPECT_EQ(whole_size("1TB"), int64_t{1} << 40);
  EXPECT_EQ(whole_size("1k"), 1024) << "as 1K";
  EXPECT_EQ(whole_size("1kB"), 1024);
  EXPECT_EQ(whole_size("9223372036854775807"), ~(int64_t{1} << 63));
}

TEST(WholeSize, RefusesTheRest) {
  for (const char* text : {"", "G", "B", "-1", "-0", "0.4", "1.5G", "1e9", "5X", "1KM", "1KK", "1i", "1iB", "1MiBB",
                           " 1", "9223372036854775808", "8388608T"})
    EXPECT_FALSE(whole_size(text)) << text;
}

}  // namespace
}  // namespace hstujit
