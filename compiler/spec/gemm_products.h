// The products of one call of a gemm operator, in float64: one, or one of each sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "compiler/spec/gemm_spec.h"

namespace hstujit {

// Its extents, the first of its rows, and its place on axes of sequences.
struct GemmProduct {
  int64_t m = 0, k = 0;
  int64_t first_row = 0, sequence = 0;
};

// `rows`: of each sequence where those have products of their own, else of all together.
std::vector<GemmProduct> gemm_products(const GemmInterface& gemm, const std::vector<int64_t>& rows);

// An extent of an interface in a call of so many rows.
inline int64_t gemm_extent(int64_t extent, int64_t rows) { return extent == GemmInterface::kRows ? rows : extent; }

// How long an axis of a tensor is in such a call.
int64_t gemm_size(const Dimension& dimension, const std::vector<int64_t>& rows);

// The tensor of an argument in such a call, all of its elements 0.
HostTensor gemm_tensor(const Argument& argument, const std::vector<int64_t>& rows);

// Where element (row, column) of what a product has of a tensor lies.
inline size_t place_in(const HostTensor& tensor, const GemmProduct& product, int64_t row, int64_t column) {
  const size_t rank = tensor.shape.size();
  const int64_t before = rank == 3 ? product.sequence * tensor.shape[1] : product.first_row;
  return static_cast<size_t>((before + row) * tensor.shape[rank - 1] + column);
}

// Element (row, column) of the matrix that a factor holds.
inline double gemm_element(const GemmFactor& factor, const HostTensor& tensor, const GemmProduct& product, int64_t row,
                           int64_t column) {
  return tensor
      .reals[factor.transposed ? place_in(tensor, product, column, row) : place_in(tensor, product, row, column)];
}

// The rows of the matrix that the second factor of a product holds, each in one piece, also where the tensor has the
// transposed matrix. The tensor must outlive it.
class GemmRows {
 public:
  GemmRows(const GemmInterface& gemm, const HostTensor& tensor, const GemmProduct& product);
  const double* row(int64_t number) const { return first_ + number * width_; }

 private:
  int64_t width_;
  std::vector<double> transposed_;
  const double* first_;
};

// Values that the epilogue reads for an element of the result, in the order of the interface. The values of a call must
// outlive it.
class GemmOperands {
 public:
  GemmOperands(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values);
  // Writes to `operands`, whose memory an earlier element may have used.
  void read(const GemmProduct& product, int64_t row, int64_t column, std::vector<double>& operands) const;

 private:
  const GemmInterface& gemm_;
  std::vector<const HostValue*> values_;
};

// Factor of sums of columns, the second result of such a call.
double column_scale(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values);

// A tensor as the second result of such a call: an element of what `sum` makes of the terms of a column's sum.
HostTensor sums_of_columns(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values,
                           const std::vector<int64_t>& rows,
                           const std::function<double(const std::vector<double>&)>& sum);

}  // namespace hstujit
