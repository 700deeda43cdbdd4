#include "compiler/spec/short_sequences.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "compiler/spec/batch.h"
#include "compiler/spec/random.h"

namespace hstujit {

namespace {

// Draws lengths from a density in proportion to n^-exponent between 1 and `longest`: the lengths below which the
// middles of `count` equal parts of all sequences lie.
std::vector<int64_t> power_law_lengths(double longest, double exponent, size_t count) {
  std::vector<int64_t> lengths;
  const double power = 1 - exponent;
  for (size_t i = 0; i < count; ++i) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    lengths.push_back(std::llround(std::pow(1 + part * (std::pow(longest, power) - 1), 1 / power)));
  }
  return lengths;
}

}  // namespace

std::vector<int64_t> typical_short_lengths(int64_t longest, size_t count) {
  constexpr int kHalvings = 30;
  const int64_t mean = std::clamp<int64_t>(longest / 8, 1, 48);
  const auto most = static_cast<int64_t>(count) * mean;
  // A larger exponent makes them shorter. At 1 the integral is a logarithm: no halving ends there.
  double low = -1.01, high = 4;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    const std::vector<int64_t> lengths = power_law_lengths(static_cast<double>(longest), middle, count);
    (std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) > most ? low : high) = middle;
  }
  return power_law_lengths(static_cast<double>(longest), high, count);
}

Lengths make_short_lengths(const Instance& instance, int64_t max_seq_len) {
  if (has_given_lengths(instance)) return make_lengths(instance, max_seq_len);
  constexpr uint64_t kSeed = 1;
  std::vector<int64_t> lengths = typical_short_lengths(max_seq_len, static_cast<size_t>(kShortBatch));
  for (size_t i = lengths.size(); i > 1; --i) std::swap(lengths[i - 1], lengths[random_bits(kSeed, 0, i) % i]);
  Instance of_short_ones = instance;
  of_short_ones.lengths.list = std::move(lengths);
  return make_lengths(of_short_ones, max_seq_len);
}

}  // namespace hstujit
