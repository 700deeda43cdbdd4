#include "compiler/spec/gemm_products.h"

#include <numeric>

namespace hstujit {

std::vector<GemmProduct> gemm_products(const GemmInterface& gemm, const std::vector<int64_t>& rows) {
  std::vector<GemmProduct> products;
  int64_t first_row = 0;
  for (const int64_t count : rows) {
    const auto extent = [&](int64_t value) { return value == GemmInterface::kRows ? count : value; };
    products.push_back({extent(gemm.m), extent(gemm.k), first_row, static_cast<int64_t>(products.size())});
    first_row += count;
  }
  return products;
}

int64_t gemm_size(const Dimension& dimension, const std::vector<int64_t>& rows) {
  if (dimension.is_constant()) return dimension.bias;
  if (dimension.symbol == kSequenceAxis) return dimension.size(std::accumulate(rows.begin(), rows.end(), int64_t{0}));
  return dimension.size(static_cast<int64_t>(rows.size()));
}

HostTensor gemm_tensor(const Argument& argument, const std::vector<int64_t>& rows) {
  HostTensor tensor;
  int64_t elements = 1;
  for (const Dimension& dimension : argument.shape) {
    tensor.shape.push_back(gemm_size(dimension, rows));
    elements *= tensor.shape.back();
  }
  tensor.reals.resize(static_cast<size_t>(elements));
  return tensor;
}

GemmRows::GemmRows(const GemmInterface& gemm, const HostTensor& tensor, const GemmProduct& product) : width_(gemm.n) {
  if (!gemm.b.transposed) {
    width_ = tensor.shape.back();
    first_ = tensor.reals.data() + place_in(tensor, product, 0, 0);
    return;
  }
  transposed_.resize(static_cast<size_t>(product.k * width_));
  for (int64_t column = 0; column < width_; ++column) {
    for (int64_t i = 0; i < product.k; ++i)
      transposed_[static_cast<size_t>(i * width_ + column)] = tensor.reals[place_in(tensor, product, column, i)];
  }
  first_ = transposed_.data();
}

GemmOperands::GemmOperands(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values)
    : gemm_(gemm) {
  for (const GemmOperand& operand : gemm.operands)
    values_.push_back(&values[static_cast<size_t>(find_argument(arguments, operand.name))]);
}

void GemmOperands::read(const GemmProduct& product, int64_t row, int64_t column, std::vector<double>& operands) const {
  operands.clear();
  for (size_t i = 0; i < values_.size(); ++i) {
    const HostValue& value = *values_[i];
    switch (gemm_.operands[i].kind) {
      case GemmOperandKind::kScalar:
        operands.push_back(value.scalar);
        break;
      case GemmOperandKind::kVector:
        operands.push_back(value.tensor.reals[static_cast<size_t>(product.sequence * gemm_.n + column)]);
        break;
      case GemmOperandKind::kMatrix:
        operands.push_back(value.tensor.reals[place_in(value.tensor, product, row, column)]);
        break;
    }
  }
}

double column_scale(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values) {
  const std::string& name = gemm.column_sums->scale;
  return name.empty() ? 1 : values[static_cast<size_t>(find_argument(arguments, name))].scalar;
}

HostTensor sums_of_columns(const GemmInterface& gemm, const Signature& arguments, const std::vector<HostValue>& values,
                           const std::vector<int64_t>& rows,
                           const std::function<double(const std::vector<double>&)>& sum) {
  const auto find = [&](const std::string& name) { return static_cast<size_t>(find_argument(arguments, name)); };
  const GemmFactor& factor = gemm.column_sums->of_a ? gemm.a : gemm.b;
  const HostTensor& from = values[find(factor.name)].tensor;
  HostTensor result = gemm_tensor(arguments[find(gemm.column_sums->name)], rows);
  const int64_t columns = gemm.summed_columns();
  for (const GemmProduct& product : gemm_products(gemm, rows)) {
    std::vector<double> terms(static_cast<size_t>(product.k));
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t i = 0; i < product.k; ++i)
        terms[static_cast<size_t>(i)] = from.reals[place_in(from, product, i, column)];
      result.reals[static_cast<size_t>(product.sequence * columns + column)] = sum(terms);
    }
  }
  return result;
}

}  // namespace hstujit
