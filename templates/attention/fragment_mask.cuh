// Which pairs of a thread's accumulators are valid under the mask, as bits.
#pragma once
#include "attention/pair.cuh"
#include "common/bits.cuh"
#include "common/regions.cuh"

// Mask of a fragment of wgmma with kScores accumulators a thread: accumulator i is at the thread's own position + (i &
// 2 ? 8 : 0) of one coordinate and at its first one + 8 * (i / 4) + (i & 1) of the other.
template <int kScores>
class FragmentMask {
 public:
  // `bits_of(half, further)`: 32 pairs of the own position + 8 * half, those from the first one + further on.
  template <class BitsOf>
  __device__ __forceinline__ explicit FragmentMask(const BitsOf& bits_of) {
#pragma unroll
    for (int word = 0; word < kWords; ++word) bits_[word] = 0;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      bits_[part / 4] |= (bits_of(part % 2, part / 2 * 32) & kOwnBits) << 2 * (part % 4);
    }
  }
  // All pairs are valid.
  __device__ __forceinline__ FragmentMask() {
#pragma unroll
    for (int word = 0; word < kWords; ++word) bits_[word] = ~0u;
  }

  __device__ __forceinline__ bool all() const {
    static_assert(kParts % 4 == 0, "a word has bits of no pair, which are 0");
    bool all = true;
#pragma unroll
    for (int word = 0; word < kWords; ++word) all = all && bits_[word] == ~0u;
    return all;
  }

  __device__ __forceinline__ bool valid(int i) const {
    const int group = i / 4, part = group / 4 * 2 + (i >> 1 & 1);
    return bits_[part / 4] & 1u << (8 * (group % 4) + 2 * (part % 4) + (i & 1));
  }

 private:
  static constexpr int kParts = ceil_div(kScores, 16) * 2;  // words of 32 pairs, of which the thread has 8
  static constexpr int kWords = ceil_div(kParts, 4);
  static constexpr u32 kOwnBits = 0x03030303;  // the thread's pairs among 32

  u32 bits_[kWords];
};
