// Elements of 16 bits as numbers, in the loops that emulated products spend their time in.
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

}  // namespace emulation
