// mbarriers of other CTAs of a cluster (sm_90).
#pragma once
#include "common/types.cuh"

// Arrives on the barrier at a cluster_address.
__device__ __forceinline__ void mbarrier_arrive_cluster(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
