// Random numbers of kernels against those of references.
#include "compiler/spec/philox.h"

#include <gtest/gtest.h>

#include "tests/emulation/cuda_emulation.h"

namespace hstujit {
namespace {

TEST(EmulatedPhilox, KnownAnswer) {
  u32 words[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  ::philox4x32(words, 0x299f31d0a4093822);
  const u32 expected[4] = {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(words[i], expected[i]) << i;
}

template <int kCount>
void expect_numbers_of_references() {
  for (const u64 seed : {u64{0}, u64{0x123456789abcdef0}, ~u64{0}}) {
    for (const u64 offset : {u64{3}, u64{0x700000001}}) {
      // Multiples of 8 near 0, 2^35 and 2^63.
      for (const u64 begin : {u64{0}, u64{1} << 35, u64{1} << 63}) {
        for (u64 element = begin - (begin > 0 ? 8 : 0); element < begin + 16; element += kCount) {
          float numbers[kCount];
          ::draw_uniform<8, 0>(seed, offset, element / 8, static_cast<int>(element % 8), numbers);
          for (int i = 0; i < kCount; ++i)
            EXPECT_EQ(numbers[i], 128 + hstujit::philox_uniform(seed, offset, element + static_cast<u64>(i)))
                << kCount << " " << element + static_cast<u64>(i);
        }
      }
    }
  }
}

TEST(EmulatedPhilox, NeighboursHaveTheNumbersOfReferences) {
  expect_numbers_of_references<1>();
  expect_numbers_of_references<2>();
  expect_numbers_of_references<4>();
  expect_numbers_of_references<8>();
}

// Columns 16 to 31 of a matrix of 40, and 3 to 6 of one of 7, whose rows begin anywhere.
TEST(EmulatedPhilox, ColumnsOfAMatrixHaveTheNumbersOfItsElements) {
  for (const u64 row : {u64{0}, u64{5}, u64{1} << 34}) {
    float numbers[8], one[1];
    for (int column = 0; column < 16; column += 8) {
      ::draw_uniform<40, 16>(9, 2, row, column, numbers);
      for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(numbers[i], 128 + hstujit::philox_uniform(9, 2, row * 40 + static_cast<u64>(16 + column + i)));
      }
    }
    for (int column = 0; column < 4; ++column) {
      ::draw_uniform<7, 3>(9, 2, row, column, one);
      EXPECT_EQ(one[0], 128 + hstujit::philox_uniform(9, 2, row * 7 + static_cast<u64>(3 + column)));
    }
  }
}

}  // namespace
}  // namespace hstujit
