// A value that is rounded between operations, as if a tensor of that type had held it.
#pragma once
#include "common/pack.cuh"

template <class Type>
__device__ __forceinline__ float rounded_to(float x) {
  u32 words[2];
  Type::put(words, 0, x, 0.0f);
  return Type::get(words, 0);
}
