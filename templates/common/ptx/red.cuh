// Sums of several CTAs in global memory.
#pragma once
#include "common/types.cuh"

// Adds four values to those at a 16-byte-aligned address, in any order with the additions of other threads.
__device__ __forceinline__ void add_global(float* to, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}

// The same of one value.
__device__ __forceinline__ void add_global(float* to, float a) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(a) : "memory");
}

// Four values that this thread added or stored, or another one whose additions it has waited for.
__device__ __forceinline__ void load_sum(const float* from, float& a, float& b, float& c, float& d) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "l"(from)
               : "memory");
}
