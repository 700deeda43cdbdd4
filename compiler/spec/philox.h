// Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), from the paper: what the random numbers of
// kernels are held to (docs/ops.md, "Random numbers").
#pragma once

#include <array>
#include <cstdint>

namespace hstujit {

inline constexpr int kPhiloxRounds = 7;

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key,
                                          int rounds = kPhiloxRounds) {
  for (int round = 0; round < rounds; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0], b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

// From 0 to below 1, a multiple of 2^-16.
inline double philox_uniform(uint64_t seed, uint64_t offset, uint64_t element) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const uint64_t counter = element / 8;
  const auto words = philox4x32({low(counter), high(counter), low(offset), high(offset)}, {low(seed), high(seed)});
  return (words[element % 8 / 2] >> (element % 2 * 16) & 0xffff) * 0x1p-16;
}

}  // namespace hstujit
