// Stages of shared memory that a producer fills and consumers empty, in turn.
#pragma once
#include "common/types.cuh"

namespace sm90 {

// Stage and phase of a pipeline in shared memory: one register, since consumers have none to spare.
template <int kStages>
class PipelineState {
 public:
  __device__ __forceinline__ int stage() const { return kPowerOfTwo ? position_ % kStages : position_ >> 1; }
  __device__ __forceinline__ u32 phase() const { return kPowerOfTwo ? position_ / kStages & 1 : position_ & 1; }
  __device__ __forceinline__ void advance() {
    if constexpr (kPowerOfTwo) {
      ++position_;
    } else {
      position_ = stage() == kStages - 1 ? phase() ^ 1 : position_ + 2;
    }
  }
  __device__ __forceinline__ PipelineState previous() const {
    PipelineState state;
    if constexpr (kPowerOfTwo) {
      state.position_ = position_ - 1;
    } else {
      state.position_ = stage() == 0 ? (kStages - 1) * 2 + (phase() ^ 1) : position_ - 2;
    }
    return state;
  }

 private:
  static constexpr bool kPowerOfTwo = (kStages & (kStages - 1)) == 0;
  u32 position_ = 0;  // power of two: steps so far; else stage * 2 + phase
};

}  // namespace sm90
