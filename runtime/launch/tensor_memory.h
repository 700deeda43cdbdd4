// Where the elements of a tensor lie in memory, as DLPack says it.
#pragma once

#include <cstdint>

#include "compiler/spec/types.h"
#include "hstujit/hstujit.h"

namespace hstujit {

DLDataType dlpack_type(DataType type);

// First element. The address is computed as a number: that of a tensor which is still to be checked may lead anywhere.
inline char* tensor_data(const DLTensor& tensor) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset);
}

// Stride of one dimension in elements (a tensor without strides is contiguous).
inline int64_t tensor_stride(const DLTensor& tensor, int dimension) {
  if (tensor.strides != nullptr) return tensor.strides[dimension];
  int64_t stride = 1;
  for (int inner = tensor.ndim - 1; inner > dimension; --inner) stride *= tensor.shape[inner];
  return stride;
}

// Whether it has no elements.
inline bool is_empty(const DLTensor& tensor) {
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  return false;
}

// Bytes from the first to behind the last element of a tensor that is not empty. No more than an int64_t counts.
int64_t span_bytes(const DLTensor& tensor);

// Whether two tensors of one shape and data type have each element at the same address.
bool have_one_place(const DLTensor& a, const DLTensor& b);

// Whether two tensors that are not empty have a byte in common.
bool share_bytes(const DLTensor& a, const DLTensor& b);

}  // namespace hstujit
