// Random numbers that are a function of (seed, stream, index) alone: the same on every machine and for any number of
// threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace hstujit {

// SplitMix64's finaliser: every bit of the result depends on every bit of x.
inline uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  return mix_bits(mix_bits(mix_bits(seed) ^ stream) ^ index);
}

// In (0, 1).
inline double random_unit(uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

// Standard normal, by the transform of Box and Muller.
inline double random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(random_unit(random_bits(seed, stream, 2 * index))));
  return radius * std::cos(2 * std::numbers::pi * random_unit(random_bits(seed, stream, 2 * index + 1)));
}

}  // namespace hstujit
