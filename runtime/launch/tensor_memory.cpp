#include "runtime/launch/tensor_memory.h"

#include <algorithm>

namespace hstujit {

namespace {

// Bytes from the first to behind the last of dimensions `from` and inner ones.
int64_t inner_span_bytes(const DLTensor& tensor, int from) {
  const int64_t bytes = tensor.dtype.bits / 8;
  int64_t span = bytes;
  for (int i = from; i < tensor.ndim; ++i) {
    if (tensor.shape[i] > 1) span += (tensor.shape[i] - 1) * tensor_stride(tensor, i) * bytes;
  }
  return span;
}

int64_t floor_div(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor != 0 && (value < 0) != (divisor < 0) ? 1 : 0);
}

// Whether two tensors that are not empty have a byte in common, `distance` being from the begin of `a` to that of `b`.
// Slices of one matrix interleave without meeting: where both step over the same number of bytes, rows `a[i]` and
// `b[j]` lie apart by `distance` less the steps between them, and only the two such distances nearest to 0 can meet.
// Tensors of different strides are taken to fill all that they span.
bool inner_rows_share(const DLTensor& a, const DLTensor& b, int dimension, int64_t distance) {
  const int64_t span_a = inner_span_bytes(a, dimension), span_b = inner_span_bytes(b, dimension);
  if (distance >= span_a || -distance >= span_b) return false;
  if (a.ndim != b.ndim || dimension == a.ndim) return true;
  const int64_t rows_a = a.shape[dimension], rows_b = b.shape[dimension];
  const int64_t step_a = tensor_stride(a, dimension) * (a.dtype.bits / 8);
  const int64_t step_b = tensor_stride(b, dimension) * (b.dtype.bits / 8);
  // The stride of a single row is never used, and may be any.
  const int64_t step = rows_a > 1 ? step_a : step_b;
  if (rows_a == 1 && rows_b == 1) return inner_rows_share(a, b, dimension + 1, distance);
  if (rows_a > 1 && rows_b > 1 && step_a != step_b) return true;
  if (step < std::max(inner_span_bytes(a, dimension + 1), inner_span_bytes(b, dimension + 1))) return true;
  const int64_t steps = floor_div(distance, step), rest = distance - steps * step;
  const auto has_rows = [&](int64_t apart) { return apart < rows_a && -apart < rows_b; };
  return (has_rows(steps) && inner_rows_share(a, b, dimension + 1, rest)) ||
         (has_rows(steps + 1) && inner_rows_share(a, b, dimension + 1, rest - step));
}

}  // namespace

DLDataType dlpack_type(DataType type) {
  const uint8_t code = is_integer(type) ? kDLInt : type == DataType::kBf16 ? kDLBfloat : kDLFloat;
  return {code, static_cast<uint8_t>(8 * size_of(type)), 1};
}

int64_t span_bytes(const DLTensor& tensor) { return inner_span_bytes(tensor, 0); }

bool have_one_place(const DLTensor& a, const DLTensor& b) {
  for (int i = 0; i < a.ndim; ++i) {
    if (a.shape[i] > 1 && tensor_stride(a, i) != tensor_stride(b, i)) return false;
  }
  return tensor_data(a) == tensor_data(b);
}

bool share_bytes(const DLTensor& a, const DLTensor& b) {
  return inner_rows_share(a, b, 0, tensor_data(b) - tensor_data(a));
}

}  // namespace hstujit
