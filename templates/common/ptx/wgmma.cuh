// Warpgroup matrix multiply: operands and ordering. The instructions themselves are generated in the exact shapes
// a kernel needs (instruction_wrappers of its skeleton).
#pragma once
#include "common/types.cuh"

constexpr int kSwizzleBytes = 128;                  // row pitch of every operand tile in shared memory
constexpr int kSwizzleColumns = kSwizzleBytes / 2;  // 16-bit elements per row of a tile

// The value of lane 0, in a form that the compiler knows to be the same in the whole warp.
__device__ __forceinline__ u32 warp_uniform(u32 value) { return __shfl_sync(~0u, value, 0); }

// Lower word of the descriptor of an operand in 128-byte-swizzled shared memory, in a uniform register.
// `leading_stride`: bytes between 64-column tiles, read only for operands whose columns are the N dimension
// (transposed). A descriptor has 18 bits of an address; in a cluster, those above them say whose shared memory it is.
__device__ __forceinline__ u32 wgmma_operand(u32 address, u32 leading_stride = 16) {
  return warp_uniform((address & 0x3ffff) >> 4 | (leading_stride >> 4) << 16);
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kPending of the most recent groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Accumulators that a running wgmma reads or writes must not be moved by the compiler across a wait or an issue.
template <int kCount>
__device__ __forceinline__ void wgmma_keep_in_place(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
