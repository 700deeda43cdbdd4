// Functions of operands of sums over thousands of rows, where the config's activation is "mufu": an error of 2^-11, as
// that of tanh.approx, shows in such a sum.
#pragma once
#include "common/math.cuh"

// 1 - 2 / (exp(2 x) + 1). The error is below 2^-22, as that of sigmoid(2 x), which is all that regions make of it. It
// is small for large x, too, whose product with log2(e) is rounded: there the quotient is near 0 or near 2.
__device__ __forceinline__ float precise_tanh(float x) {
  constexpr float kTwiceLog2E = 2.88539008f;
  return fmaf(-2.0f, fast_reciprocal(fast_exp2(x * kTwiceLog2E) + 1.0f), 1.0f);
}

__device__ __forceinline__ float precise_rsqrt(float x) { return __frsqrt_rn(x); }
