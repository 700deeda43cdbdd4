// Operands of attention with an element for each row, as the expression of a score reads them: of the pair's row, of
// its column, or of another position of their sequence, which has rows. A position outside of it reads 0.
#pragma once
#include "common/pack.cuh"

// `stride`: from one row's element to the next one's. Pairs are of templates/attention/pair.cuh.
template <class PairOf, class T>
__device__ __forceinline__ T row_element(const PairOf& pair, const T* tensor, i64 stride, int position) {
  const int nearest =
      max(min(position, pair.n - 1), 0);  // loaded without a branch, as ptxas overlaps no wgmma with one
  const T element = __ldg(tensor + (pair.start + nearest) * stride);
  // Not `nearest == position`: ptxas of CUDA 13.0 may take the predicate of the minimum for it, the wrong way round.
  return static_cast<u32>(position) < static_cast<u32>(pair.n) ? element : T(0);
}

// The element of the pair's row or column, which is within the sequence wherever the pair counts; of others, that of
// the last row.
template <class PairOf, class T>
__device__ __forceinline__ T own_row_element(const PairOf& pair, const T* tensor, i64 stride, int position) {
  return __ldg(tensor + (pair.start + min(static_cast<u32>(position), static_cast<u32>(pair.n - 1))) * stride);
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float own_row_element(const PairOf& pair, Type, const u16* tensor, i64 stride,
                                                 int position) {
  const u32 word = own_row_element(pair, tensor, stride, position);
  return Type::get(&word, 0);
}
template <class PairOf, class Type>
__device__ __forceinline__ float row_element(const PairOf& pair, Type, const u16* tensor, i64 stride, int position) {
  const u32 word = row_element(pair, tensor, stride, position);
  return Type::get(&word, 0);
}
