// Elements of 16 bits as numbers, and sums of their products: the loops that emulated products spend their time in.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "compiler/spec/rounding.h"

namespace emulation {

inline const std::array<float, 1 << 16>& fp16_numbers() {
  static const std::array<float, 1 << 16>& table = *[] {
    auto* const numbers = new std::array<float, 1 << 16>;
    for (unsigned i = 0; i < numbers->size(); ++i)
      (*numbers)[i] = static_cast<float>(hstujit::from_fp16_bits(static_cast<uint16_t>(i)));
    return numbers;
  }();
  return table;
}

// Elements of one type.
template <bool kBf16>
struct Halves {
  const std::array<float, 1 << 16>& numbers = fp16_numbers();

  float operator()(uint16_t bits) const {
    if constexpr (kBf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    return numbers[bits];
  }
};

inline float from_half(bool bf16, uint16_t bits) { return bf16 ? Halves<true>()(bits) : Halves<false>()(bits); }

// Numbers of two columns, in one register.
using Pair = double __attribute__((vector_size(16)));
inline Pair twice(double value) { return Pair{value, value}; }

// Sums of two rows of a, whose elements are there twice, with two columns of b: two of the first row, two of the
// second.
template <unsigned kDepth>
void multiply(const Pair (&a)[2][kDepth], const Pair (&b)[kDepth], bool accumulate, float* sums) {
  Pair first{}, second{};
  if (accumulate) first = Pair{sums[0], sums[1]}, second = Pair{sums[2], sums[3]};
  for (unsigned k = 0; k < kDepth; ++k) {
    first += a[0][k] * b[k];
    second += a[1][k] * b[k];
  }
  sums[0] = static_cast<float>(first[0]);
  sums[1] = static_cast<float>(first[1]);
  sums[2] = static_cast<float>(second[0]);
  sums[3] = static_cast<float>(second[1]);
}

}  // namespace emulation
