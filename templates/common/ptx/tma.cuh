// Tensor memory accelerator: bulk tensor copies global -> shared that complete on an mbarrier, and shared -> global in
// groups of the thread that issued them.
#pragma once
#include "common/types.cuh"

__device__ __forceinline__ void prefetch_tensormap(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// One box at (column, head, row) of a tensor whose map has dimensions (columns, heads, rows).
__device__ __forceinline__ void cp_async_bulk_tensor_3d(u32 destination, const TensorMap& map, u32 barrier, int column,
                                                        int head, int row) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(destination),
      "l"(&map), "r"(barrier), "r"(column), "r"(head), "r"(row)
      : "memory");
}

// The other direction. Parts of the box outside the tensor are not written.
__device__ __forceinline__ void store_bulk_tensor_3d(u32 source, const TensorMap& map, int column, int head, int row) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(source), "r"(column), "r"(head), "r"(row)
               : "memory");
}

__device__ __forceinline__ void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the sources of all this thread's stores have been read and may be overwritten.
__device__ __forceinline__ void bulk_wait_sources_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
