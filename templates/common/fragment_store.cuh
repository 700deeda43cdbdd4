// Rounding accumulators to the data type and storing wgmma / mma.sync fragments in whole 16-byte pieces: straight to
// global memory, or to shared memory in the layout of the copy engine.
#pragma once
#include "common/types.cuh"

// Two fp32 values rounded to a pair of 16-bit floats, `low` in the low half.
template <bool kBf16>
__device__ __forceinline__ u32 pack_pair(float low, float high) {
  u32 word;
  if constexpr (kBf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}

// Transposes a 4x4 matrix of words held by the four lanes of a quad: before, word j of lane i; after, word i of lane j.
__device__ __forceinline__ void transpose_quad(u32 (&words)[4]) {
  const int lane = threadIdx.x % 4;
  const bool odd = lane & 1, upper = lane & 2;
  // 2x2 groups, then elements within them: each step swaps half of the words with one neighbour.
  u32 send0 = upper ? words[0] : words[2], send1 = upper ? words[1] : words[3];
  u32 got0 = __shfl_xor_sync(~0u, send0, 2), got1 = __shfl_xor_sync(~0u, send1, 2);
  if (upper) {
    words[0] = got0;
    words[1] = got1;
  } else {
    words[2] = got0;
    words[3] = got1;
  }
  send0 = odd ? words[0] : words[1], send1 = odd ? words[2] : words[3];
  got0 = __shfl_xor_sync(~0u, send0, 1), got1 = __shfl_xor_sync(~0u, send1, 1);
  if (odd) {
    words[0] = got0;
    words[2] = got1;
  } else {
    words[1] = got0;
    words[3] = got1;
  }
}

// Stores one row of an accumulator fragment already rounded to 16 bits. A thread's words are (column group of 8, row
// half): words[2 * group + half] holds columns 8 * group + 2 * (lane % 4) and the next. All lanes of the warp call;
// `store` is per row.
template <int kColumns>
__device__ __forceinline__ void store_fragment_row(u16* row, const u32 (&words)[kColumns / 4], int half, bool store) {
  constexpr int kGroups = kColumns / 8;
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int group = 0; group + 4 <= kGroups; group += 4) {
    u32 quad[4] = {words[2 * group + half], words[2 * group + 2 + half], words[2 * group + 4 + half],
                   words[2 * group + 6 + half]};
    transpose_quad(quad);
    if (store) *reinterpret_cast<uint4*>(row + group * 8 + lane * 8) = make_uint4(quad[0], quad[1], quad[2], quad[3]);
  }
#pragma unroll
  for (int group = kGroups / 4 * 4; group < kGroups; ++group) {
    if (store) *reinterpret_cast<u32*>(row + group * 8 + lane * 2) = words[2 * group + half];
  }
}

// Writes a warp's 16 rows of an accumulator fragment, already rounded to 16 bits, to shared memory: tiles of 64
// columns, `tile_bytes` apart, rows of 128 bytes in the 128-byte swizzle. `rows` is the address of the first row, which
// starts a swizzle atom. Words as in store_fragment_row. All lanes of the warp call.
template <int kColumns>
__device__ __forceinline__ void stage_fragment(u32 rows, int tile_bytes, const u32 (&words)[kColumns / 4]) {
  constexpr int kGroups = kColumns / 8;
  // stmatrix stores four 8x8 matrices: the two row halves of a column group, then those of the next. A lane gives the
  // address of row lane % 8 of matrix lane / 8.
  const int lane = threadIdx.x % 32;
  const u32 row = rows + (lane & 15) * 128;
  const int swizzle = (lane >> 4) ^ (lane & 7);
#pragma unroll
  for (int group = 0; group < kGroups; group += 2) {
    const u32 address = row + group / 8 * tile_bytes + ((swizzle ^ group % 8) << 4);
    const u32* w = words + 2 * group;
    if (group + 1 < kGroups) {
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(w[0]),
                   "r"(w[1]), "r"(w[2]), "r"(w[3])
                   : "memory");
    } else {
      asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(w[0]), "r"(w[1])
                   : "memory");
    }
  }
}
