// Operands of attention with an element for each head, as the expression of a score reads them.
#pragma once
#include "common/pack.cuh"

template <class PairOf, class T>
__device__ __forceinline__ T head_element(const PairOf&, const T* tensor, int head) {
  return __ldg(tensor + head);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float head_element(const PairOf&, Type, const u16* tensor, int head) {
  const u32 word = __ldg(tensor + head);
  return Type::get(&word, 0);
}
