// Attention backward on Hopper: what the consumers of both ways multiply alike.
#pragma once
#include "attention/sm90_backward/shared.cuh"

namespace sm90::backward {

template <int kCount>
__device__ __forceinline__ void clear_sums(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = 0;
}

}  // namespace sm90::backward
