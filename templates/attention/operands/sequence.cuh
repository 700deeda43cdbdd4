// Operands of attention with an element for each sequence of the batch, as the expression of a score reads them.
#pragma once
#include "common/pack.cuh"

template <class PairOf, class T>
__device__ __forceinline__ T sequence_element(const PairOf& pair, const T* tensor) {
  return __ldg(tensor + pair.t.number);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float sequence_element(const PairOf& pair, Type, const u16* tensor) {
  const u32 word = __ldg(tensor + pair.t.number);
  return Type::get(&word, 0);
}
