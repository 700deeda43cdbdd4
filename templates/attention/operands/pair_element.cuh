// Operands of attention with an element for each pair, as the expression of a score reads them. What is outside of the
// sequence, or of the tensor, reads 0 and is not loaded.
#pragma once
#include "common/pack.cuh"
#include "common/ptx/ld_global.cuh"

// Whether the tensor, of `size` rows and columns, has the pair.
template <class PairOf>
__device__ __forceinline__ bool has_element(const PairOf& pair, int size) {
  const u32 end = static_cast<u32>(min(pair.n, size));
  return static_cast<u32>(pair.row) < end && static_cast<u32>(pair.col) < end;
}

// `tensor` is that of the pair's sequence and head; `stride`: from one row to the next one.
template <class PairOf>
__device__ __forceinline__ float pair_element(const PairOf& pair, const float* tensor, i64 stride, int size) {
  return __uint_as_float(ld_global_nc_u32(tensor + (pair.row * stride + pair.col), has_element(pair, size)));
}

// The same of 16-bit floats, whose Type is Bf16 or Fp16.
template <class PairOf, class Type>
__device__ __forceinline__ float pair_element(const PairOf& pair, Type, const u16* tensor, i64 stride, int size) {
  const u32 word = ld_global_nc_u16(tensor + (pair.row * stride + pair.col), has_element(pair, size));
  return Type::get(&word, 0);
}
