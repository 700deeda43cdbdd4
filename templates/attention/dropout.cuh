// Dropout of the weights P: which pairs are kept. It follows from the seed, the offset, the first row of the sequence,
// the head, the row and the column alone, so that kernels of all templates, in tiles of any size, agree
// (docs/ops-attention.md, "Dropout").
//
// A block of 16 pairs shares the words that Philox makes of a counter, a byte each: the rows r and r + 8 of 16, and the
// columns c to c + 3 and c + 8 to c + 11 of 16, where c is 0 or 4. A thread with a fragment of S has half of the pairs
// of a block, and one with a fragment of S transposed a quarter.
#pragma once
#include "common/philox.cuh"

// Factor of sums over pairs that are kept: the inverse of their part, 0 where there are none.
template <class Params>
__device__ __forceinline__ float kept_factor(const Params& params) {
  const int kept = 256 - __float2int_rn(params.dropout_ratio * 256.0f);
  return kept > 0 ? 256.0f / static_cast<float>(kept) : 0.0f;
}

// The draws of one (sequence, head).
template <class Params>
class Dropout {
 public:
  // `start`: the row of the tensors that holds the sequence's row 0.
  __device__ __forceinline__ Dropout(const Params& params, i64 start, int head)
      : low_(static_cast<u32>(start)), high_(static_cast<u32>(start >> 32) * 1024 + static_cast<u32>(head)) {
#ifdef kSeedTensor
    const i64 seed = __ldg(params.seed_tensor);
#else
    const i64 seed = params.seed;
#endif
    key_ = static_cast<u64>(seed) + static_cast<u64>(params.offset) * 0x9e3779b97f4a7c15ull;
    const int dropped = __float2int_rn(params.dropout_ratio * 256.0f);
    // A byte x is at least `dropped` where bit 7 of (x & 127) + added says so and, up to 128, where that of x does,
    // too, above it only where both do: the majority of the two and of `half`.
    half_ = dropped <= 128 ? ~0u : 0;
    added_ = static_cast<u32>((dropped <= 128 ? 128 : 256) - dropped) * 0x01010101u;
  }

  // Kept pairs of a block: bit 8 * j + 2 * half of the rows + half of the columns, of column j of the four.
  // `row` and `column`: the block's first ones.
  __device__ __forceinline__ u32 block(u32 row, u32 column) const {
    u32 words[4] = {row / 16 * 8 + row % 8, column / 16 * 2 + column / 4 % 2, low_, high_};
    philox4x32(words, key_);
    u32 kept = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 x = words[i], sum = (x & 0x7f7f7f7fu) + added_;
      kept |= (((x & sum) | ((x | sum) & half_)) & 0x80808080u) >> (7 - i);
    }
    return kept;
  }

 private:
  const u32 low_, high_;
  u64 key_;
  u32 half_, added_;
};

// Pairs that are kept of a fragment of mma.sync with 16 rows and 16 columns, or with kTransposed of such a fragment
// transposed: bit 4 * fragment of 8 columns + element. `own`: this thread's first row, `other`: the first of the 16
// columns. With kTransposed these are its first column, and the first of the 16 rows. Products::score_column() says
// which columns a thread has.
template <bool kTransposed, class Products, class Params>
__device__ __forceinline__ u32 kept_of_square(const Dropout<Params>& dropout, int own, int other) {
  u32 bits = 0;
#pragma unroll
  for (int odd = 0; odd < 2; ++odd) {
    const int at = Products::score_column(odd);
    u32 block;
    if constexpr (kTransposed) {
      block = dropout.block(other + at, own & ~3) >> 8 * (own & 3);
    } else {
      block = dropout.block(own, other + (at & ~3)) >> 8 * (at & 3);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int half = i % 2, fragment = i / 2;
      const int bit = kTransposed ? 2 * fragment + half : 2 * half + fragment;
      bits |= (block >> bit & 1) << (4 * fragment + 2 * half + odd);
    }
  }
  return bits;
}

// Clears what is dropped of such a fragment, as two of 8 columns.
__device__ __forceinline__ void drop_square(u32 kept, float (&first)[4], float (&second)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    first[e] = kept >> e & 1 ? first[e] : 0.0f;
    second[e] = kept >> (4 + e) & 1 ? second[e] : 0.0f;
  }
}

// Pairs that are kept of a fragment of wgmma with kScores accumulators a thread, of S or with kTransposed of S
// transposed, as FragmentMask has them. A warp draws each block once: a lane two of them for 32 accumulators, and lanes
// whose pairs lie in the same blocks exchange what these say.
template <int kScores, bool kTransposed>
class KeptPairs {
 public:
  // `own`: the first of the warp's 16 rows, `other`: the first of the columns; with kTransposed of its 16 columns, and
  // of the rows. Multiples of 16. By all lanes of a warp.
  template <class Params>
  __device__ __forceinline__ void draw(const Dropout<Params>& dropout, int own, int other) {
#pragma unroll
    for (int word = 0; word < kWords; ++word) words_[word] = draw_word(dropout, own, other + 64 * word, word);
  }

  __device__ __forceinline__ bool kept(int i) const {
    const int square = i / 8 % 4, other_half = i >> 2 & 1, own_half = i >> 1 & 1, odd = i & 1;
    const int bit = kTransposed ? 8 * square + 4 * odd + 2 * other_half + own_half
                                : 16 * (square % 2) + 8 * odd + 4 * (square / 2) + 2 * own_half + other_half;
    return words_[i / 32] >> bit & 1;
  }

 private:
  static constexpr int kWords = ceil_div(kScores, 32);  // each has the pairs of 64 columns, which are four squares

  template <class Params>
  static __device__ __forceinline__ u32 draw_word(const Dropout<Params>& dropout, int own, int other, int word) {
    const int lane = static_cast<int>(threadIdx.x) % 32, own_row = lane / 4, quad_lane = lane % 4;
    if constexpr (kTransposed) {
      // This lane draws the blocks of two rows, of the square that is its number among the lanes whose columns they
      // have; each of those has a byte of them.
      const int number = own_row % 4, column = own + (own_row & 4), row = other + 16 * number + 2 * quad_lane;
      const u32 drawn = dropout.block(row, column) | dropout.block(row + 1, column) << 4;
      const u32 next = __shfl_xor_sync(~0u, drawn, 4);
      const u32 pairs = __byte_perm(drawn, next, number % 2 == 0 ? 0x6240 : 0x3715);
      return __byte_perm(pairs, __shfl_xor_sync(~0u, pairs, 8), number / 2 == 0 ? 0x5410 : 0x3276);
    } else {
      // Two lanes share the blocks of a square; one draws those of the even squares.
      const int odd = quad_lane % 2, row = own + own_row, column = other + 16 * odd + (quad_lane & 2) * 2;
      u32 drawn = dropout.block(row, column);
      if (kScores - 32 * word > 16) drawn |= dropout.block(row, column + 32) << 4;
      return __byte_perm(drawn, __shfl_xor_sync(~0u, drawn, 1), odd == 0 ? 0x5410 : 0x3276);
    }
  }

  u32 words_[kWords];
};
