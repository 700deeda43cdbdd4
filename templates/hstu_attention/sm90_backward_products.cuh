// Attention backward on Hopper: what the consumers of both ways multiply alike.
#pragma once
#include "hstu_attention/sm90_backward_shared.cuh"

namespace sm90::backward {

template <int kCount>
__device__ __forceinline__ void clear_sums(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = 0;
}

// product = kept streamed^T, of 64 lines of a tile and all of a block, each with kColumns columns: S or dP. The
// operands are as wgmma_operand gives them.
template <class Config, int kColumns>
__device__ __forceinline__ void issue_lines_product(float (&product)[Config::kBlockN / 2], u32 kept, u32 streamed) {
  constexpr int kStepsPerTile = kSwizzleColumns / 16;
#pragma unroll
  for (int step = 0; step < ceil_div(kColumns, 16); ++step) {
    const int tile = step / kStepsPerTile, offset = step % kStepsPerTile * 32;
    const u64 a = wgmma_descriptor(kept, tile * Config::kBlockM * kSwizzleBytes + offset);
    const u64 b = wgmma_descriptor(streamed, tile * Config::kBlockN * kSwizzleBytes + offset);
    if (step == 0) {
      ScoreProduct::begin(product, a, b);
    } else {
      ScoreProduct::issue(product, a, b, true);
    }
  }
}

}  // namespace sm90::backward
