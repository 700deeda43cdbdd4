// Messages of CTAs of a grid to one another through global memory, in counters that are zero at first.
#pragma once
#include "common/types.cuh"

// The next number, from 0 on, of all CTAs that ask.
__device__ __forceinline__ u64 take_number(u64* counter) {
  u64 number;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(number) : "l"(counter) : "memory");
  return number;
}

// Loads the counter; writes of others before they raised it to this value can be read then.
__device__ __forceinline__ u32 load_acquire(const u32* counter) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

// To at least `value`, after whatever this thread, and those it has synchronised with, wrote before. Waits for that.
__device__ __forceinline__ void raise_release(u32* counter, u32 value) {
  asm volatile("red.release.gpu.global.max.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
