// Philox4x32-7 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): random numbers that follow from a key
// and a counter alone, so that whoever needs them again computes them again. Seven rounds are the fewest that the
// paper finds no fault with.
#pragma once
#include "common/types.cuh"

// In place: four words of a counter become four random ones.
__device__ __forceinline__ void philox4x32(u32 (&words)[4], u64 seed) {
  u32 key0 = static_cast<u32>(seed), key1 = static_cast<u32>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const u64 a = static_cast<u64>(words[0]) * 0xd2511f53u, b = static_cast<u64>(words[2]) * 0xcd9e8d57u;
    words[0] = static_cast<u32>(b >> 32) ^ words[1] ^ key0;
    words[1] = static_cast<u32>(b);
    words[2] = static_cast<u32>(a >> 32) ^ words[3] ^ key1;
    words[3] = static_cast<u32>(a);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

// Over 2^16: the 16 bits are the mantissa of a number from 128 to below 129.
__device__ __forceinline__ float uniform_of_low_half(u32 word) {
  return __uint_as_float(0x43000000u | (word & 0xffffu)) - 128.0f;
}
__device__ __forceinline__ float uniform_of_high_half(u32 word) {
  return __uint_as_float(0x43000000u | (word >> 16)) - 128.0f;
}

// Numbers from 0 to below 1 of neighbouring elements, of which the first is a multiple of kCount, a power of two. Eight
// elements, from a multiple of eight on, are one counter: half a word each.
template <int kCount>
__device__ __forceinline__ void philox_uniform(u64 seed, u64 offset, u64 element, float (&out)[kCount]) {
#pragma unroll
  for (int first = 0; first < kCount; first += 8) {
    const u64 counter = (element + first) / 8;
    u32 words[4] = {static_cast<u32>(counter), static_cast<u32>(counter >> 32), static_cast<u32>(offset),
                    static_cast<u32>(offset >> 32)};
    philox4x32(words, seed);
    if constexpr (kCount < 8) {  // of the eight only those from `element` on are wanted
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const u32 place = static_cast<u32>(element + i) % 8;
        const u32 word = place < 2 ? words[0] : place < 4 ? words[1] : place < 6 ? words[2] : words[3];
        out[i] = place % 2 == 0 ? uniform_of_low_half(word) : uniform_of_high_half(word);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        out[first + i] = i % 2 == 0 ? uniform_of_low_half(words[i / 2]) : uniform_of_high_half(words[i / 2]);
    }
  }
}
