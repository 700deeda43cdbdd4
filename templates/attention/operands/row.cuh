// Operands of attention with an element for each row, as the expression of a score reads them: of the pair's row, of
// its column, or of another position of their sequence. A position outside of the sequence reads 0.
#pragma once
#include "common/pack.cuh"

// `stride`: from one row's element to the next one's. Pairs are of templates/attention/pair.cuh.
template <class PairOf, class T>
__device__ __forceinline__ T row_element(const PairOf& pair, const T* tensor, i64 stride, int position) {
  const bool inside = static_cast<u32>(position) < static_cast<u32>(pair.n);
  return inside ? __ldg(tensor + (pair.start + position) * stride) : T(0);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float row_element(const PairOf& pair, Type, const u16* tensor, i64 stride, int position) {
  const u32 word = row_element(pair, tensor, stride, position);
  return Type::get(&word, 0);
}
