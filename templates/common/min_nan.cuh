// The lesser of two numbers, or NaN where either is, by one instruction: fminf gives the other one then.
#pragma once

__device__ __forceinline__ float min_nan(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
