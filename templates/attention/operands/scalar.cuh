// Operands of attention that are one number on the device, as the expression of a score reads them.
#pragma once
#include "common/pack.cuh"

template <class PairOf, class T>
__device__ __forceinline__ T scalar_element(const PairOf&, const T* tensor) {
  return __ldg(tensor);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float scalar_element(const PairOf&, Type, const u16* tensor) {
  const u32 word = __ldg(tensor);
  return Type::get(&word, 0);
}
