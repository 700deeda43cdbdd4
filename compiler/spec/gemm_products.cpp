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

std::vector<double> gemm_operands(const GemmInterface& gemm, const Signature& arguments,
                                  const std::vector<HostValue>& values, const GemmProduct& product, int64_t row,
                                  int64_t column) {
  std::vector<double> operands;
  for (const GemmOperand& operand : gemm.operands) {
    const HostValue& value = values[static_cast<size_t>(find_argument(arguments, operand.name))];
    switch (operand.kind) {
      case GemmOperandKind::kScalar:
        operands.push_back(value.scalar);
        break;
      case GemmOperandKind::kVector:
        operands.push_back(value.tensor.reals[static_cast<size_t>(product.sequence * gemm.n + column)]);
        break;
      case GemmOperandKind::kMatrix:
        operands.push_back(value.tensor.reals[place_in(value.tensor, product, row, column)]);
        break;
    }
  }
  return operands;
}

}  // namespace hstujit
