// Fused multiply-add of two 16-bit floats in a word.
#pragma once
#include "common/types.cuh"

template <bool kBf16>
__device__ __forceinline__ u32 fma_x2(u32 a, u32 b, u32 c) {
  u32 d;
  if constexpr (kBf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  }
  return d;
}
