#include "compiler/spec/length_bucket.h"

#include <gtest/gtest.h>

#include "compiler/support/env.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

TEST(LengthBucket, Pow2FromSixtyFour) {
  for (const auto& [length, bucket] :
       {std::pair{1, 64}, {64, 64}, {65, 128}, {128, 128}, {1000, 1024}, {8193, 16384}}) {
    EXPECT_EQ(length_bucket(LengthMode::kPow2, length), bucket) << length;
  }
}

TEST(LengthBucket, FineHasFourStepsAboveEightThousand) {
  for (const auto& [length, bucket] : {std::pair{1, 64},
                                       {8192, 8192},
                                       {8193, 10240},
                                       {10240, 10240},
                                       {10241, 12288},
                                       {16384, 16384},
                                       {16385, 20480}}) {
    EXPECT_EQ(length_bucket(LengthMode::kFine, length), bucket) << length;
  }
}

TEST(LengthBucket, StaticTakesTheSmallestListedThatFits) {
  const std::vector<int64_t> listed = {1024, 256, 512};
  EXPECT_EQ(length_bucket(LengthMode::kStatic, 1, listed), 256);
  EXPECT_EQ(length_bucket(LengthMode::kStatic, 257, listed), 512);
  EXPECT_EQ(length_bucket(LengthMode::kStatic, 1024, listed), 1024);
  EXPECT_EQ(length_bucket(LengthMode::kStatic, 5000, listed), 1024);
  EXPECT_EQ(length_bucket(LengthMode::kStatic, 5000), 5000);
}

TEST(LengthBucket, ExactIsTheLength) { EXPECT_EQ(length_bucket(LengthMode::kExact, 777), 777); }

TEST(LengthBucket, BucketsAreNeverShorterAndAreTheirOwnBucket) {
  for (const LengthMode mode : {LengthMode::kPow2, LengthMode::kFine, LengthMode::kExact}) {
    EXPECT_EQ(parse_length_mode(to_string(mode)), mode);
    for (int64_t length = 1; length < 70000; length += 37) {
      const int64_t bucket = length_bucket(mode, length);
      EXPECT_GE(bucket, length);
      EXPECT_EQ(length_bucket(mode, bucket), bucket);
    }
  }
}

TEST(LengthMode, NamesAreThoseOfTheVariable) {
  const auto names = split(kLengthModeNames, ' ');
  EXPECT_EQ(split(environment_variable(Env::kLengthMode).allowed, '|'), names);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(to_string(static_cast<LengthMode>(i)), names[i]);
    EXPECT_EQ(parse_length_mode(names[i]), static_cast<LengthMode>(i));
  }
  EXPECT_EQ(parse_length_mode("pow"), std::nullopt);
  EXPECT_EQ(parse_length_mode(kLengthModeNames), std::nullopt);
}

}  // namespace
}  // namespace hstujit
