// The random numbers of references against the known answers that the authors of Philox publish.
#include "compiler/spec/philox.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Element 4c + w is word w of counter c; counter, offset and seed have 64 bits.
TEST(Philox, UniformNumbersAreTheWordsInOrder) {
  EXPECT_EQ(philox_uniform(0, 0, 0), (0x6627e8d5 >> 8) * 0x1p-24);
  EXPECT_EQ(philox_uniform(0, 0, 3), (0x9b00dbd8 >> 8) * 0x1p-24);
  const uint64_t seed = 0x299f31d0a4093822, offset = 0x0370734413198a2e, element = uint64_t{0x05a308d3243f6a88} * 4;
  const Words words = philox4x32({0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(philox_uniform(seed, offset, element + i), (words[i] >> 8) * 0x1p-24);
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
