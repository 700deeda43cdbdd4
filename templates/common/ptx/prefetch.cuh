// Bytes that will be read soon.
#pragma once
#include "common/types.cuh"

// The line of the cache that has the byte, into L2.
__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}
