// Clusters of CTAs that read one another's shared memory (sm_90).
#pragma once
#include "common/types.cuh"

__device__ __forceinline__ u32 cluster_index() {
  u32 index;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return index;
}

// This CTA's number within its cluster.
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// CTAs of a cluster: 1 unless the launch says otherwise.
__device__ __forceinline__ u32 cluster_blocks() {
  u32 blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// Every thread of every CTA of the cluster; what they wrote to shared memory before is seen after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The same without what was written: for CTAs that have read, and may end or go on to write when all have.
__device__ __forceinline__ void cluster_sync_reads() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The address at which CTA `rank` of the cluster has what this CTA has at `address`.
__device__ __forceinline__ u32 cluster_address(u32 address, u32 rank) {
  u32 mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

__device__ __forceinline__ float4 ld_cluster_float4(u32 address) {
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}
