// Sums over a row, by a tree that depends on the layout alone: every thread of the row gets the same bits.
#pragma once
#include "row/layout.cuh"

template <class Layout, int kMaxSums>
class RowReducer {
 public:
  template <int kSums>
  __device__ __forceinline__ void add_up(float (&sums)[kSums]) {
#pragma unroll
    for (int offset = Layout::kLanesPerRow / 2; offset > 0; offset /= 2) exchange(sums, offset);
    if constexpr (Layout::kWarpsPerRow > 1) across_warps(sums);
  }

 private:
  template <int kSums>
  static __device__ __forceinline__ void exchange(float (&sums)[kSums], int offset) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += __shfl_xor_sync(~0u, sums[i], offset);
  }

  // Two buffers alternate: who writes to one again has met all that read it at the barrier between.
  template <int kSums>
  __device__ __forceinline__ void across_warps(float (&sums)[kSums]) {
    constexpr int kWarps = Layout::kThreads / 32;
    __shared__ __align__(16) unsigned char static_bytes[2 * kWarps * kMaxSums * sizeof(float)];
    float* const buffer = reinterpret_cast<float*>(static_bytes) + buffer_ * kWarps * kMaxSums;
    buffer_ ^= 1;
    const int lane = threadIdx.x % 32;
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) buffer[threadIdx.x / 32 * kMaxSums + i] = sums[i];
    }
    __syncthreads();
    const int warp = Layout::row_of_cta() * Layout::kWarpsPerRow + lane % Layout::kWarpsPerRow;
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = buffer[warp * kMaxSums + i];
#pragma unroll
    for (int offset = Layout::kWarpsPerRow / 2; offset > 0; offset /= 2) exchange(sums, offset);
  }

  int buffer_ = 0;
};

// The parts of a row that have sums of their own, in each thread: here the row is one.
template <class Layout, class Operands, int kMaxSums, class = void>
class PartReducer {
 public:
  static constexpr int kParts = 1;
  static __device__ __forceinline__ int part(int) { return 0; }

  template <int kSums>
  __device__ __forceinline__ void add_up(float (&sums)[1][kSums]) {
    rows_.add_up(sums[0]);
  }

 private:
  RowReducer<Layout, kMaxSums> rows_;
};
