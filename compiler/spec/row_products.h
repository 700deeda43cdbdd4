// Products and sums of rows in float64: the loops that references spend their time in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hstujit {

// The terms go to several sums in turn, because one sum would wait for the addition before it. The order of terms does
// not depend on the machine.
inline double dot(const double* a, const double* b, int64_t width) {
  constexpr int64_t kSums = 8;
  std::array<double, kSums> sums{};
  int64_t d = 0;
  for (; d + kSums <= width; d += kSums) {
    for (int64_t i = 0; i < kSums; ++i) sums[static_cast<size_t>(i)] += a[d + i] * b[d + i];
  }
  double sum = 0;
  for (; d < width; ++d) sum += a[d] * b[d];
  for (const double part : sums) sum += part;
  return sum;
}

// Adds factor * from. The two rows do not overlap.
inline void add_multiple(double* __restrict to, double factor, const double* __restrict from, int64_t width) {
  for (int64_t d = 0; d < width; ++d) to[d] += factor * from[d];
}

}  // namespace hstujit
