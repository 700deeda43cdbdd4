// Bulk copies of neighbouring bytes, global -> shared, that complete on an mbarrier.
#pragma once
#include "common/types.cuh"

// Both addresses and the number of bytes are multiples of 16.
__device__ __forceinline__ void cp_async_bulk(u32 destination, const void* source, u32 bytes, u32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}
