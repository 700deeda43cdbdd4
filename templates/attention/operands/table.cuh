// Operands of attention that are tables, as the expression of a score reads them: the entry at an index that it
// computes, or the nearest that the table has.
#pragma once
#include "common/pack.cuh"

// `stride`: from one entry to the next one; `tensor` is that of the pair's head where heads have tables of their own.
template <class PairOf, class T>
__device__ __forceinline__ T table_element(const PairOf&, const T* tensor, i64 stride, int entries, int position) {
  return __ldg(tensor + max(min(position, entries - 1), 0) * stride);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float table_element(const PairOf& pair, Type, const u16* tensor, i64 stride, int entries,
                                               int position) {
  const u32 word = table_element(pair, tensor, stride, entries, position);
  return Type::get(&word, 0);
}
