// Tensor memory accelerator: bulk tensor copies global -> shared that complete on an mbarrier.
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
