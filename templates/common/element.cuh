// Elements of tensors of integers that a caller filled: whatever they hold, and whatever index they give, nothing is
// read beside a tensor.
#pragma once
#include "common/types.cuh"

// Loads the element at the nearest index that exists; 0 of an empty tensor.
template <class Integer>
__device__ __forceinline__ i64 element_of(const Integer* data, i64 count, i64 index) {
  if (count <= 0) return 0;
  return data[max(0ll, min(index, count - 1))];
}

// The index where a tensor of so many rows has it, else -1.
__device__ __forceinline__ i64 row_within(i64 index, i64 rows) { return index >= 0 && index < rows ? index : -1; }
