// The greater of two numbers, or NaN where either is, by one instruction: fmaxf gives the other one then.
#pragma once

__device__ __forceinline__ float max_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
