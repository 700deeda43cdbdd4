// What CTAs of a cluster write into one another's shared memory, and the barriers that count it (sm_90).
#pragma once
#include "common/types.cuh"

// Writes to a cluster_address. The barrier, at another one of the same CTA, counts the 16 bytes when they are there.
__device__ __forceinline__ void st_async_float4(u32 address, const float4& value, u32 barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}
