#include "compiler/spec/rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hstujit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Rounding, KnownFp16Bits) {
  const std::pair<double, int> cases[] = {
      {0.0, 0x0000},         {-0.0, 0x8000},        {1.0, 0x3c00},           {-2.0, 0xc000},
      {65504.0, 0x7bff},     {65519.99, 0x7bff},    {65520.0, 0x7c00},       {-kInfinity, 0xfc00},
      {0x1p-24, 0x0001},     {0x1p-25, 0x0000},     {0x1.8p-25, 0x0001},     {0x1p-14, 0x0400},
      {0x1.ff8p-15, 0x03ff}, {0x1.ffcp-15, 0x0400}, {1.0 + 0x1p-11, 0x3c00}, {1.0 + 0x3p-11, 0x3c02}};
  for (const auto& [value, bits] : cases) EXPECT_EQ(to_fp16_bits(value), bits) << value;
  EXPECT_TRUE(std::isnan(from_fp16_bits(to_fp16_bits(NAN))));
}

TEST(Rounding, StepsNearZeroAreTheLeastValues) {
  EXPECT_EQ(smallest_step(DataType::kFp16), from_fp16_bits(1));
  EXPECT_EQ(smallest_step(DataType::kBf16), from_bf16_bits(1));
  EXPECT_EQ(smallest_step(DataType::kFp32), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(smallest_step(DataType::kInt64), 0);
}

// Over numbers of any mantissa, and never more than the unit roundoff allows.
TEST(Rounding, TheVarianceIsThatOfTheErrors) {
  for (const DataType type : {DataType::kBf16, DataType::kFp16, DataType::kFp32}) {
    const double unit = unit_roundoff(type);
    EXPECT_EQ(round_to(type, 1 + unit), 1) << "a tie, to even";
    EXPECT_GT(round_to(type, 1 + 1.5 * unit), 1);
    double squares = 0, variances = 0;
    for (int i = 0; i < 20000; ++i) {
      const double value = std::ldexp(std::sin(i + 0.5), i % 7), error = round_to(type, value) - value;
      squares += error * error;
      variances += rounding_variance(value, unit);
      EXPECT_LE(error * error, 3 * rounding_variance(value, unit));
    }
    EXPECT_NEAR(squares, variances, 0.05 * variances) << to_string(type);
  }
  EXPECT_EQ(rounding_variance(0, 0.5), 0);
  EXPECT_EQ(unit_roundoff(DataType::kInt32), 0);
}

TEST(Rounding, KnownBf16Bits) {
  const std::pair<double, int> cases[] = {{1.0, 0x3f80},          {-0.0, 0x8000},         {3.14159265, 0x4049},
                                          {1.0 + 0x1p-8, 0x3f80}, {1.0 + 0x3p-8, 0x3f82}, {0x1.ffp127, 0x7f80},
                                          {0x1.fep127, 0x7f7f},   {kInfinity, 0x7f80},    {0x1p-133, 0x0001},
                                          {0x1p-134, 0x0000},     {0x1p-126, 0x0080}};
  for (const auto& [value, bits] : cases) EXPECT_EQ(to_bf16_bits(value), bits) << value;
  EXPECT_TRUE(std::isnan(from_bf16_bits(to_bf16_bits(NAN))));
}

TEST(Rounding, RoundsOnceNotByWayOfFp32) {
  // Just above a tie of bf16; fp32 would round it onto the tie, which then goes down to even.
  EXPECT_EQ(to_bf16_bits(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(to_fp16_bits(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}

TEST(Rounding, EveryValueOfSixteenBitsKeepsItsBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    if (const double value = from_fp16_bits(pattern); !std::isnan(value)) {
      EXPECT_EQ(to_fp16_bits(value), pattern);
      EXPECT_EQ(round_to(DataType::kFp16, value), value);
    }
    if (const double value = from_bf16_bits(pattern); !std::isnan(value)) {
      EXPECT_EQ(to_bf16_bits(value), pattern);
      EXPECT_EQ(round_to(DataType::kBf16, value), value);
    }
  }
}

TEST(Rounding, Fp32AgreesWithTheProcessor) {
  uint64_t state = 1;
  for (uint64_t index = 0; index < 20000; ++index) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const double value =
        std::bit_cast<double>((state & ~(uint64_t{0x7ff} << 52)) | (uint64_t{1023 - 155 + index % 290} << 52));
    EXPECT_EQ(round_to(DataType::kFp32, value), static_cast<double>(static_cast<float>(value))) << value;
  }
}

TEST(Rounding, PackedBytesComeBack) {
  const HostTensor reals{{2, 2}, {1.0, -0.5, 3.0, 0.0}, {}};
  for (const DataType type : {DataType::kBf16, DataType::kFp16, DataType::kFp32}) {
    const auto bytes = pack(reals, type);
    EXPECT_EQ(bytes.size(), 4 * size_of(type));
    const HostTensor back = unpack(bytes, type, {2, 2});
    EXPECT_EQ(back.reals, reals.reals);
    EXPECT_EQ(back.shape, reals.shape);
  }
  const HostTensor integers{{3}, {}, {0, -7, 1 << 30}};
  for (const DataType type : {DataType::kInt32, DataType::kInt64}) {
    EXPECT_EQ(unpack(pack(integers, type), type, {3}).integers, integers.integers);
  }
}

}  // namespace
}  // namespace hstujit
