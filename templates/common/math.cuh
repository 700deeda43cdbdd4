// Approximate functions that regions call with activation "mufu": one special-function instruction each, named after it.
// With activation "accurate" regions call CUDA's own tanhf, expf, ... instead.
#pragma once

__device__ __forceinline__ float fast_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  return fast_exp2(x * kLog2E);
}

__device__ __forceinline__ float fast_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_log(float x) {
  constexpr float kLn2 = 0.693147181f;
  return fast_log2(x) * kLn2;
}

__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_divide(float x, float y) { return x * fast_reciprocal(y); }

__device__ __forceinline__ float fast_sqrt(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_rsqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Division that rounds down, for a positive divisor.
__device__ __forceinline__ int floor_div(int a, int b) { return a >= 0 ? a / b : (a - b + 1) / b; }
