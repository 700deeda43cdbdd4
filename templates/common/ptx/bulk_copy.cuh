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

// The same as one copy of a warp, all of whose lanes call with the same values: they stay together, and the values in
// registers that they share.
__device__ __forceinline__ void cp_async_bulk_by_warp(u32 destination, const void* source, u32 bytes, u32 barrier) {
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "@elected cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n"
      "}\n" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}
