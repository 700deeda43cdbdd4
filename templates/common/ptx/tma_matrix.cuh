// Tensor memory accelerator: boxes of matrices, global -> shared, which complete on an mbarrier.
#pragma once
#include "common/types.cuh"

// One box at (column, row) of a matrix whose map has dimensions (columns, rows). What lies outside is 0.
__device__ __forceinline__ void cp_async_bulk_tensor_2d(u32 destination, const TensorMap& map, u32 barrier, int column,
                                                        int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          destination),
      "l"(&map), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}
