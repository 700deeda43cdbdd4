// Words of bits.
#pragma once
#include "common/types.cuh"

// Those from number `first` on: all where it is not positive, none from 32 on. A shift of PTX ends at 32.
__device__ __forceinline__ u32 bits_from(int first) {
  u32 bits;
  asm("shl.b32 %0, %1, %2;" : "=r"(bits) : "r"(~0u), "r"(max(first, 0)));
  return bits;
}
