// Dropout of the weights P: which pairs are kept (docs/ops-attention.md, "Dropout"). Kernels are held to this
// (templates/attention/dropout.cuh).
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "compiler/spec/philox.h"

namespace hstujit {

inline constexpr std::string_view kDropoutRatio = "dropout_ratio";

// Philox's key is the seed plus so many times the offset.
inline constexpr uint64_t kDropoutOffsetStep = 0x9e3779b97f4a7c15;
// Ratios are multiples of 1 over this: a pair has 8 random bits.
inline constexpr int kDropoutSteps = 256;

class AttentionDropout {
 public:
  AttentionDropout() = default;  // keeps all
  AttentionDropout(double ratio, int64_t seed, int64_t offset)
      : key_(static_cast<uint64_t>(seed) + static_cast<uint64_t>(offset) * kDropoutOffsetStep),
        dropped_(static_cast<uint32_t>(std::nearbyint(static_cast<float>(ratio) * kDropoutSteps))) {}

  // By what weights are multiplied in a head of the sequence whose first row is row `start` of the tensors: 0, or the
  // inverse of the part that is kept.
  double factor(int64_t start, int64_t head, int64_t row, int64_t column) const {
    return keeps(start, head, row, column) ? static_cast<double>(kDropoutSteps) / (kDropoutSteps - dropped_) : 0;
  }

  // A block of 16 pairs, each a byte of four words, shares a counter: two rows and two columns eight apart, and of
  // these columns four in a row.
  bool keeps(int64_t start, int64_t head, int64_t row, int64_t column) const {
    if (dropped_ == 0) return true;
    const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
    const auto i = low(row), j = low(column);
    const auto words =
        philox4x32({i / 16 * 8 + i % 8, j / 16 * 2 + j / 4 % 2, low(start), low((start >> 32) * 1024 + head)},
                   {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
    return (words[i / 8 % 2 * 2 + j / 8 % 2] >> (j % 4 * 8) & 0xff) >= dropped_;
  }

 private:
  uint64_t key_ = 0;
  uint32_t dropped_ = 0;  // of kDropoutSteps
};

}  // namespace hstujit
