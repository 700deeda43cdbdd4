// Effects of rounding on the results of a product: the variance of each element's error, from the roundings that
// docs/numerics.md lists, with its formulas of products and of running sums.
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/spec/gemm_products.h"
#include "compiler/spec/gemm_reference.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/running_sums.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

constexpr double kFp32 = 0x1p-24, kTf32 = 0x1p-11;
constexpr double kArithmetic = 4 * kFp32;  // of an expression of a few operations

}  // namespace

std::vector<std::vector<double>> GemmReference::error_variances(const OpSpec& op, Direction direction,
                                                                const std::vector<HostValue>& inputs,
                                                                const std::vector<bool>&) const {
  const auto& spec = static_cast<const GemmSpec&>(op);
  const GemmInterface& gemm = spec.interface();
  const Signature arguments = spec.signature(direction);
  const auto value_of = [&](std::string_view name) -> const HostValue& {
    return inputs[static_cast<size_t>(find_argument(arguments, name))];
  };
  const HostTensor &a = value_of(gemm.a.name).tensor, &b = value_of(gemm.b.name).tensor;
  const int64_t n = gemm.n;
  // Rows of each sequence that has a product of its own, else of all together.
  std::vector<int64_t> rows;
  if (gemm.per_sequence()) {
    const std::vector<int64_t>& offsets = value_of("seq_offsets").tensor.integers;
    for (size_t i = 1; i < offsets.size(); ++i) rows.push_back(offsets[i] - offsets[i - 1]);
  } else {
    rows.push_back(a.shape[gemm.sums_rows() == gemm.a.transposed ? 0 : 1]);
  }
  const double operand_unit = spec.dtype() == DataType::kFp32 && !spec.is_ieee() ? kTf32 : 0;
  // Tensor cores cut sums off, which is off by up to two units.
  const double sum_unit = spec.is_ieee() ? kFp32 : 2 * kFp32;
  const auto result = static_cast<size_t>(find_argument(arguments, "out"));
  HostTensor out = gemm_tensor(arguments[result], rows);
  const GemmOperands operands_of(gemm, arguments, inputs);
  const auto compute_row = [&](const GemmProduct& product, const GemmRows& rows_of_b, int64_t row) {
    Sums sums(1, n);
    for (int64_t i = 0; i < product.k; ++i)
      sums.add(0, operand(gemm_element(gemm.a, a, product, row, i), operand_unit), rows_of_b.row(i), operand_unit);
    std::vector<double> operands;
    for (int64_t column = 0; column < n; ++column) {
      const Estimate sum = sums.total(0, column, sum_unit);
      operands_of.read(product, row, column, operands);
      const auto result_of = [&](double x) { return epilogue(spec, x, column, operands); };
      constexpr double kStep = 0x1p-10;  // linear epilogues have this slope exactly, activations nearly
      const double slope = (result_of(sum.value + kStep) - result_of(sum.value - kStep)) / (2 * kStep);
      out.reals[place_in(out, product, row, column)] =
          square(slope) * sum.variance + square(kArithmetic) * (square(slope * sum.value) + square(result_of(0)));
    }
  };
  for (const GemmProduct& product : gemm_products(gemm, rows)) {
    const GemmRows rows_of_b(gemm, b, product);
    parallel_for(static_cast<size_t>(product.m), threads_for(product.m, 1),
                 [&](int, size_t row) { compute_row(product, rows_of_b, static_cast<int64_t>(row)); });
  }
  std::vector<std::vector<double>> variances(arguments.size());
  variances[result] = std::move(out.reals);
  if (!gemm.column_sums) return variances;
  // Terms are not rounded, whatever precision products have.
  const double scale = column_scale(gemm, arguments, inputs);
  const auto of_sum = [scale](const std::vector<double>& terms) {
    Sum sum;
    for (const double term : terms) sum.add(term, 0);
    const Estimate total = sum.total(kFp32);
    return square(scale) * (total.variance + square(kArithmetic * total.value));
  };
  variances[static_cast<size_t>(find_argument(arguments, gemm.column_sums->name))] =
      sums_of_columns(gemm, arguments, inputs, rows, of_sum).reals;
  return variances;
}

}  // namespace hstujit
