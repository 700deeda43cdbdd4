// Arrivals of a warp at an mbarrier, by which it gives something back. compute-sanitizer's racecheck takes a barrier to
// order the accesses of those threads only that arrive, so for it every lane arrives.
#pragma once
#include "common/ptx/barrier.cuh"

namespace sm90 {

// Arrivals of one warp.
template <bool kLanesArrive>
constexpr int kArrivalsPerWarp = kLanesArrive ? 32 : 1;

// Arrives for a warp whose lanes have come together.
template <bool kLanesArrive>
__device__ __forceinline__ void arrive_as_warp(u64& barrier) {
  if (kLanesArrive || threadIdx.x % 32 == 0) mbarrier_arrive(shared_address(&barrier));
}

// Gives back what the barrier guards, after all lanes of the warp have read it.
template <bool kLanesArrive>
__device__ __forceinline__ void release_warp(u64& barrier) {
  __syncwarp();
  arrive_as_warp<kLanesArrive>(barrier);
}

}  // namespace sm90
