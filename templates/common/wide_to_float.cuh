// Integers of 64 bits as fp32, by two conversions of 32 bits, which are four times as fast as one of 64.
#pragma once
#include "common/types.cuh"

// Off by 2^-23 of the value at most, and exact up to 2^24. The upper half counts from the nearest multiple of 2^32, so
// that nothing cancels.
__device__ __forceinline__ float wide_to_float(i64 value) {
  const int low = static_cast<int>(value), high = static_cast<int>(value >> 32);
  const float multiple = static_cast<float>(high) + (low < 0 ? 1.0f : 0.0f);
  return fmaf(multiple, 4294967296.0f, static_cast<float>(low));
}
