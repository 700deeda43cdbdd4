// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): random numbers that follow from a key and
// a counter alone, so that whoever needs them again computes them again.
#pragma once
#include "common/types.cuh"

// In place: four words of a counter become four random ones.
__device__ __forceinline__ void philox4x32(u32 (&words)[4], u64 seed) {
  u32 key0 = static_cast<u32>(seed), key1 = static_cast<u32>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = static_cast<u64>(words[0]) * 0xd2511f53u, b = static_cast<u64>(words[2]) * 0xcd9e8d57u;
    words[0] = static_cast<u32>(b >> 32) ^ words[1] ^ key0;
    words[1] = static_cast<u32>(b);
    words[2] = static_cast<u32>(a >> 32) ^ words[3] ^ key1;
    words[3] = static_cast<u32>(a);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

// Numbers from 0 to below 1 of neighbouring elements, of which the first is a multiple of kCount, a power of two. Four
// elements, from a multiple of four on, are one counter.
template <int kCount>
__device__ __forceinline__ void philox_uniform(u64 seed, u64 offset, u64 element, float (&out)[kCount]) {
#pragma unroll
  for (int first = 0; first < kCount; first += 4) {
    const u64 counter = (element + first) / 4;
    u32 words[4] = {static_cast<u32>(counter), static_cast<u32>(counter >> 32), static_cast<u32>(offset),
                    static_cast<u32>(offset >> 32)};
    philox4x32(words, seed);
#pragma unroll
    for (int i = 0; i < 4 && first + i < kCount; ++i) {
      u32 word = words[i];
      if constexpr (kCount < 4) {
        const u32 place = static_cast<u32>(element + i) % 4;
        word = place == 0 ? words[0] : place == 1 ? words[1] : place == 2 ? words[2] : words[3];
      }
      out[first + i] = static_cast<float>(word >> 8) * 0x1p-24f;
    }
  }
}
