// Attention backward: how CTAs take the next work tile of a list, whichever of them is free.
#pragma once
#include "common/schedule/semaphore.cuh"

namespace sm90::backward {

// Numbers of a counter in global memory, each of which may be asked for before it is needed; used by one whole warp,
// all lanes in step.
class TileCounter {
 public:
  __device__ __forceinline__ bool prepared() const { return prepared_; }

  __device__ __forceinline__ void prepare(u64* counter) {
    if (threadIdx.x % 32 == 0) number_ = take_number(counter);
    prepared_ = true;
  }

  // A number that no other CTA gets, nor this one again; after prepare().
  __device__ __forceinline__ i64 take() {
    prepared_ = false;
    return static_cast<i64>(__shfl_sync(~0u, number_, 0));
  }

 private:
  u64 number_ = 0;         // lane 0: the next one
  bool prepared_ = false;  // it is there
};

// Numbers of a list's work tiles, of which a CTA takes the next one that no other has whenever it is free. Dealt out
// round by round, tiles of sequences that are not sorted differ so much that CTAs drift apart and read the same rows at
// different times.
template <class Params>
class TakenNumbers {
 public:
  __device__ __forceinline__ TakenNumbers(const Params& params, i64) : params_(params) {}

  // May be called while there is other work, as a number takes its time.
  __device__ __forceinline__ void prepare() { counter_.prepare(params_.taken_tiles); }
  __device__ __forceinline__ i64 next() {
    if (!counter_.prepared()) prepare();
    return counter_.take();
  }

 private:
  const Params& params_;
  TileCounter counter_;
};

}  // namespace sm90::backward
