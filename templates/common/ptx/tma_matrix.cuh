// Tensor memory accelerator: boxes of matrices, global -> shared, which complete on an mbarrier, and shared -> global
// in groups of the thread that issued them.
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

// The same box to the same address of each CTA of the cluster whose bit is set in `ranks`; it completes on the barrier
// that each of them has at `barrier`.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(u32 destination, const TensorMap& map, u32 barrier,
                                                                  int column, int row, u16 ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4}], [%2], %5;" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(ranks)
      : "memory");
}

// The other direction, as one store of a warp, all of whose lanes call with the same values: they stay together, and
// the values in registers that they share. Parts of the box outside the matrix are not written. The store is in a group
// of the lane that was elected, always the same one, so all lanes end groups and wait for them.
__device__ __forceinline__ void store_bulk_tensor_2d_by_warp(u32 source, const TensorMap& map, int column, int row) {
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "@elected cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n"
      "}\n" ::"l"(&map),
      "r"(source), "r"(column), "r"(row)
      : "memory");
}

// The same of a tensor of matrices, whose map has dimensions (columns, rows, matrices).
__device__ __forceinline__ void store_bulk_tensor_3d_by_warp(u32 source, const TensorMap& map, int column, int row,
                                                             int matrix) {
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "@elected cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n"
      "}\n" ::"l"(&map),
      "r"(source), "r"(column), "r"(row), "r"(matrix)
      : "memory");
}

// Waits until the sources of all but the last kPending of this thread's groups of stores have been read.
template <int kPending>
__device__ __forceinline__ void bulk_wait_groups_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
