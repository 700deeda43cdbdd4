// Words of bits.
#pragma once
#include "common/types.cuh"

// Bit i is what `holds(i)` says. Unrolled, so that those that nobody looks at cost nothing.
template <class Holds>
__device__ __forceinline__ u32 bits_where(const Holds& holds) {
  u32 bits = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) bits |= (holds(i) ? 1u : 0u) << i;
  return bits;
}

// Returns the bits from number `first` on: all where it is not positive, none from 32 on. A shift of PTX ends at 32.
__device__ __forceinline__ u32 bits_from(int first) {
  u32 bits;
  asm("shl.b32 %0, %1, %2;" : "=r"(bits) : "r"(~0u), "r"(max(first, 0)));
  return bits;
}
