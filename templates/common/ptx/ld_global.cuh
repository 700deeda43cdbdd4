// Single elements from global memory that no kernel of the launch writes, and 16-bit floats as fp32.
#pragma once
#include "common/types.cuh"

// Zero, and no access, where `valid` is false.
__device__ __forceinline__ u32 ld_global_nc_u32(const void* address, bool valid) {
  u32 word;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "mov.b32 %0, 0;\n"
      "@p ld.global.nc.u32 %0, [%1];\n"
      "}\n"
      : "=&r"(word)
      : "l"(address), "r"(static_cast<int>(valid)));
  return word;
}

// Two bytes, in the low half.
__device__ __forceinline__ u32 ld_global_nc_u16(const void* address, bool valid) {
  u16 half;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "mov.b16 %0, 0;\n"
      "@p ld.global.nc.u16 %0, [%1];\n"
      "}\n"
      : "=&h"(half)
      : "l"(address), "r"(static_cast<int>(valid)));
  return half;
}

__device__ __forceinline__ float cvt_f32_f16(u32 half) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<u16>(half)));
  return x;
}

// The 16-bit floats in the low and in the high half of a word.
template <bool kBf16>
__device__ __forceinline__ float unpack_low(u32 word) {
  if constexpr (kBf16) {
    return __uint_as_float(word << 16);
  } else {
    return cvt_f32_f16(word & 0xffff);
  }
}

template <bool kBf16>
__device__ __forceinline__ float unpack_high(u32 word) {
  if constexpr (kBf16) {
    return __uint_as_float(word & 0xffff0000);
  } else {
    return cvt_f32_f16(word >> 16);
  }
}
