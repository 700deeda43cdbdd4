// Division of 64-bit integers that rounds down, for a positive divisor.
#pragma once
#include "common/types.cuh"

__device__ __forceinline__ i64 floor_div_wide(i64 a, i64 b) {
  const i64 quotient = a / b;
  return quotient - (quotient * b > a ? 1 : 0);
}
