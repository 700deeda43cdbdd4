// Data that kernels stream through: loads and stores of up to 16 bytes, and conversions of 16-bit floats.
#pragma once
#include "common/types.cuh"

// kBytes is 2, 4, 8 or 16, and the address a multiple of it; of 2 bytes, the upper half of the word is 0. No kernel of the
// launch writes there. `kOnce`: past L1, for what nobody reads again.
template <int kBytes, bool kOnce>
__device__ __forceinline__ void ld_stream(u32 (&words)[(kBytes + 3) / 4], const void* address) {
  if constexpr (kBytes == 2) {
    u16 half;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(half) : "l"(address));
    words[0] = half;
  } else if constexpr (kBytes == 4) {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(words[0]) : "l"(address));
  } else if constexpr (kBytes == 8) {
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(address));
  } else if constexpr (kOnce) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(address));
  } else {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(address));
  }
}

template <int kBytes>
__device__ __forceinline__ void st_stream(void* address, const u32 (&words)[(kBytes + 3) / 4]) {
  if constexpr (kBytes == 2) {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(static_cast<u16>(words[0])) : "memory");
  } else if constexpr (kBytes == 4) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(words[0]) : "memory");
  } else if constexpr (kBytes == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(words[0]), "r"(words[1]) : "memory");
  } else {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
  }
}

__device__ __forceinline__ float half_to_float(u32 half) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<u16>(half)));
  return x;
}

// Rounded to nearest, `low` in the low half.
__device__ __forceinline__ u32 round_to_bf16x2(float low, float high) {
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

__device__ __forceinline__ u32 round_to_f16x2(float low, float high) {
  u32 word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
