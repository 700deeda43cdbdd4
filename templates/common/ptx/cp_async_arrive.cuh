// Copies global -> shared by the threads themselves that complete on an mbarrier (sm_80 and later).
#pragma once
#include "common/types.cuh"

// Copies the first `bytes` of 16 and writes zeros in place of the others; both addresses are aligned to 16 bytes.
__device__ __forceinline__ void cp_async_first_bytes(u32 destination, const void* source, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(bytes) : "memory");
}

// Arrives once all copies that this thread has begun are done. The barrier counts this arrival like any other.
__device__ __forceinline__ void cp_async_arrive(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
