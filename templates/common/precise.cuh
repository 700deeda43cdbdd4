// Functions of operands of sums over thousands of rows, where the config's activation is "mufu": an error of 2^-11, as
// that of tanh.approx, shows in such a sum.
#pragma once
#include "common/math.cuh"

// tanh(x / 2) = 1 - 2 / (exp(x) + 1). The error is below 2^-22, as that of sigmoid(x), which is all that regions make of
// it. It is small for large x, too, whose product with log2(e) is rounded: there the quotient is near 0 or near 2.
__device__ __forceinline__ float precise_tanh_of_half(float x) {
  constexpr float kLog2E = 1.44269504f;
  return fmaf(-2.0f, fast_reciprocal(fast_exp2(x * kLog2E) + 1.0f), 1.0f);
}

__device__ __forceinline__ float precise_tanh(float x) { return precise_tanh_of_half(x + x); }

// One step of Newton's method, which has no branch, as __frsqrt_rn does. Of 0 and infinity it would make NaN.
__device__ __forceinline__ float precise_rsqrt(float x) {
  const float y = fast_rsqrt(x);
  const float better = fmaf(0.5f * y, fmaf(-x * y, y, 1.0f), y);
  return better == better ? better : y;
}
