#include "compiler/spec/gemm_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/spec/gemm_products.h"
#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/row_products.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// Elements vary around `usual`, with this deviation.
HostValue random_tensor(const Argument& argument, const Lengths& lengths, double usual, double deviation, uint64_t seed,
                        uint64_t stream) {
  HostValue value;
  HostTensor& tensor = value.tensor;
  tensor = gemm_tensor(argument, lengths.rows);
  constexpr size_t kBlock = 1 << 14;
  parallel_blocks(tensor.reals.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      tensor.reals[i] = round_to(argument.dtype, usual + deviation * random_normal(seed, stream, i));
  });
  return value;
}

}  // namespace

std::vector<HostValue> GemmReference::make_inputs(const OpSpec& op, Direction direction, const Lengths& lengths,
                                                  uint64_t seed) const {
  const auto& spec = static_cast<const GemmSpec&>(op);
  const GemmInterface& gemm = spec.interface();
  // So that elements of the product have a deviation of about 1, as those of its first factor.
  const auto sequences = static_cast<int64_t>(gemm.per_sequence() ? lengths.rows.size() : 1);
  const int64_t rows = lengths.total_rows() / std::max<int64_t>(1, sequences);
  const double deviation = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, gemm_extent(gemm.k, rows))));
  std::vector<HostValue> values;
  for (const Argument& argument : spec.signature(direction)) {
    if (argument.role == ArgumentRole::kOutput) {
      values.emplace_back();
      continue;
    }
    if (argument.semantic == Semantic::kOffsets) {
      values.emplace_back();
      values.back().tensor.integers = offsets_of(lengths.rows);
      values.back().tensor.shape = {sequences + 1};
      continue;
    }
    if (argument.semantic == Semantic::kMaxRows) {
      values.push_back({{}, static_cast<double>(lengths.max_seq_len)});
      continue;
    }
    const auto operand = std::find_if(gemm.operands.begin(), gemm.operands.end(),
                                      [&](const GemmOperand& found) { return found.name == argument.name; });
    const bool scale = gemm.column_sums && argument.name == gemm.column_sums->scale;
    const double usual = scale ? 1 : operand == gemm.operands.end() ? 0 : operand->usual;
    if (argument.kind == ArgumentKind::kFloat) {
      values.push_back({{}, usual});
    } else {
      values.push_back(
          random_tensor(argument, lengths, usual, argument.name == gemm.b.name ? deviation : 1, seed, values.size()));
    }
  }
  return values;
}

void GemmReference::compute(const OpSpec& op, Direction direction, const Lengths& lengths,
                            std::vector<HostValue>& values) const {
  const auto& spec = static_cast<const GemmSpec&>(op);
  const GemmInterface& gemm = spec.interface();
  const Signature arguments = spec.signature(direction);
  const auto value_of = [&](std::string_view name) -> HostValue& {
    return values[static_cast<size_t>(find_argument(arguments, name))];
  };
  const int64_t n = gemm.n;
  const HostTensor &a = value_of(gemm.a.name).tensor, &b = value_of(gemm.b.name).tensor;
  HostTensor& out = value_of("out").tensor;
  const std::vector<int64_t> rows = gemm.per_sequence() ? lengths.rows : std::vector<int64_t>{lengths.total_rows()};
  out = gemm_tensor(arguments[static_cast<size_t>(find_argument(arguments, "out"))], rows);
  const GemmOperands operands_of(gemm, arguments, values);
  const auto compute_row = [&](const GemmProduct& product, const GemmRows& rows_of_b, int64_t row) {
    std::vector<double> sums(static_cast<size_t>(n), 0), operands;
    for (int64_t i = 0; i < product.k; ++i)
      add_multiple(sums.data(), gemm_element(gemm.a, a, product, row, i), rows_of_b.row(i), n);
    for (int64_t column = 0; column < n; ++column) {
      operands_of.read(product, row, column, operands);
      out.reals[place_in(out, product, row, column)] =
          epilogue(spec, sums[static_cast<size_t>(column)], column, operands);
    }
  };
  for (const GemmProduct& product : gemm_products(gemm, rows)) {
    const GemmRows rows_of_b(gemm, b, product);
    parallel_for(static_cast<size_t>(product.m), threads_for(product.m, 1),
                 [&](int, size_t row) { compute_row(product, rows_of_b, static_cast<int64_t>(row)); });
  }
  if (!gemm.column_sums) return;
  const double scale = column_scale(gemm, arguments, values);
  value_of(gemm.column_sums->name).tensor = sums_of_columns(gemm, arguments, values, rows, [scale](const auto& terms) {
    return scale * std::accumulate(terms.begin(), terms.end(), 0.0);
  });
}

}  // namespace hstujit
