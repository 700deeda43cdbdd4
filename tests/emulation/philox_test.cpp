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
          ::philox_uniform(seed, offset, element, numbers);
          for (int i = 0; i < kCount; ++i)
            EXPECT_EQ(numbers[i], hstujit::philox_uniform(seed, offset, element + static_cast<u64>(i)))
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

}  // namespace
}  // namespace hstujit
