// The random numbers of references against the known answers that the authors of Philox publish.
#include "compiler/spec/philox.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswersOfTenRounds) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}, 10), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, 10), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, 10),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KnownAnswersOfSevenRounds) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

// Element 8c + 2w is the lower half of word w of counter c; counter, offset and seed have 64 bits.
TEST(Philox, UniformNumbersAreTheHalvesOfWordsInOrder) {
  EXPECT_EQ(philox_uniform(0, 0, 0), 0xb709 * 0x1p-16);
  EXPECT_EQ(philox_uniform(0, 0, 1), 0x5f6f * 0x1p-16);
  EXPECT_EQ(philox_uniform(0, 0, 7), 0x4f73 * 0x1p-16);
  const uint64_t seed = 0x299f31d0a4093822, offset = 0x0370734413198a2e, element = uint64_t{0x05a308d3243f6a88} * 8;
  const Words words = philox4x32({0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(philox_uniform(seed, offset, element + 2 * i), (words[i] & 0xffff) * 0x1p-16);
    EXPECT_EQ(philox_uniform(seed, offset, element + 2 * i + 1), (words[i] >> 16) * 0x1p-16);
  }
}

TEST(Philox, UniformNumbersAreSpreadEvenly) {
  constexpr int kBins = 16, kCount = 64000;
  int bins[kBins] = {};
  for (uint64_t i = 0; i < kCount; ++i) {
    const double number = philox_uniform(7, 1, i);
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    ++bins[static_cast<int>(number * kBins)];
  }
  double chi_square = 0;
  for (const int bin : bins) chi_square += (bin - kCount / kBins) * (bin - kCount / kBins) / double(kCount / kBins);
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom: one stream of 1000 has more
}

}  // namespace
}  // namespace hstujit
