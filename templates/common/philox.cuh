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

// Half a word each, over 2^16 and from 128 on: the 16 bits are the mantissa of a number from 128 to below 129.
__device__ __forceinline__ float uniform_of_low_half(u32 word) {
  return __uint_as_float(__byte_perm(word, 0x43000000u, 0x7610));
}
__device__ __forceinline__ float uniform_of_high_half(u32 word) {
  return __uint_as_float(__byte_perm(word, 0x43000000u, 0x7632));
}

// The words that the eight elements from 8 * counter on share.
__device__ __forceinline__ void philox_words(u32 (&words)[4], u64 seed, u64 offset, u64 counter) {
  words[0] = static_cast<u32>(counter);
  words[1] = static_cast<u32>(counter >> 32);
  words[2] = static_cast<u32>(offset);
  words[3] = static_cast<u32>(offset >> 32);
  philox4x32(words, seed);
}

// Numbers from 128 to below 129 of neighbouring elements of a matrix that has kColumns a row: those from kFirst + column
// on. That element's place in the matrix is a multiple of kCount, a power of two.
template <int kColumns, int kFirst, int kCount>
__device__ __forceinline__ void draw_uniform(u64 seed, u64 offset, u64 row, int column, float (&out)[kCount]) {
  u32 words[4];
  if constexpr (kCount % 8 == 0) {
    const u64 counter = row * (kColumns / 8) + static_cast<u32>(kFirst + column) / 8;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i % 8 == 0) philox_words(words, seed, offset, counter + i / 8);
      const u32 word = words[i / 2 % 4];
      out[i] = i % 2 == 0 ? uniform_of_low_half(word) : uniform_of_high_half(word);
    }
  } else {  // of the eight only those from that element on are wanted
    const u64 element = row * kColumns + static_cast<u32>(kFirst + column);
    philox_words(words, seed, offset, element / 8);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const u32 place = static_cast<u32>(element + i) % 8;
      const u32 word = place < 2 ? words[0] : place < 4 ? words[1] : place < 6 ? words[2] : words[3];
      out[i] = place % 2 == 0 ? uniform_of_low_half(word) : uniform_of_high_half(word);
    }
  }
}
