// Asynchronous copies global -> shared by the threads themselves (cp.async, sm_80 and later).
#pragma once
#include "common/types.cuh"

// Copies kBytes (4, 8 or 16, both addresses aligned to it); writes zeros and reads nothing when `valid` is false.
template <int kBytes>
__device__ __forceinline__ void cp_async(u32 destination, const void* source, bool valid) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  const int bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16) {
    // Past L1: a block reads each piece once.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(destination), "l"(source), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's most recent groups are still on their way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
