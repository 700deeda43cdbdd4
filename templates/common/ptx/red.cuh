// Sums of several CTAs in global memory.
#pragma once
#include "common/types.cuh"

// Adds four values to those at a 16-byte-aligned address, in any order with the additions of other threads.
__device__ __forceinline__ void add_global(float* to, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}

// The same where `wanted` says so, without a branch.
__device__ __forceinline__ void add_global_if(bool wanted, float* to, float a, float b, float c, float d) {
  asm volatile(
      "{\n"
      ".reg .pred wanted;\n"
      "setp.ne.u32 wanted, %5, 0;\n"
      "@wanted red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n"
      "}\n" ::"l"(to),
      "f"(a), "f"(b), "f"(c), "f"(d), "r"(static_cast<u32>(wanted))
      : "memory");
}

// Four values that this thread added or stored, or another one whose additions it has waited for.
__device__ __forceinline__ void load_sum(const float* from, float& a, float& b, float& c, float& d) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "l"(from)
               : "memory");
}
