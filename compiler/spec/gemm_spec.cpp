#include "compiler/spec/gemm_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/spec/gemm_products.h"
#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_arguments.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

int64_t extent_in(int64_t extent, int64_t rows) { return extent == GemmInterface::kRows ? rows : extent; }

// Of tensors with so many rows and columns, behind an axis of sequences where they have no rows of those.
std::vector<Dimension> shape_of(const GemmInterface& gemm, int64_t rows, int64_t columns) {
  const Dimension all = gemm.per_sequence() ? Dimension::jagged(std::string(kSequenceAxis), "seq_offsets")
                                            : Dimension::of(std::string(kSequenceAxis));
  const auto axis = [&](int64_t extent) { return extent == GemmInterface::kRows ? all : Dimension::constant(extent); };
  std::vector<Dimension> shape = {axis(rows), axis(columns)};
  const bool has_rows = rows == GemmInterface::kRows || columns == GemmInterface::kRows;
  if (gemm.per_sequence() && !has_rows) shape.insert(shape.begin(), Dimension::of("B"));
  return shape;
}

std::vector<Dimension> shape_of(const GemmInterface& gemm, const GemmFactor& factor, int64_t rows, int64_t columns) {
  return factor.transposed ? shape_of(gemm, columns, rows) : shape_of(gemm, rows, columns);
}

// Of a value for each of so many columns.
std::vector<Dimension> vector_shape(const GemmInterface& gemm, int64_t columns) {
  std::vector<Dimension> shape = {Dimension::constant(columns)};
  if (gemm.per_sequence()) shape.insert(shape.begin(), Dimension::of("B"));
  return shape;
}
// Kernels read and write two neighbours at a time.
int64_t vector_alignment(DataType dtype) { return 2 * static_cast<int64_t>(size_of(dtype)); }

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

Signature GemmSpec::signature(Direction) const {
  const GemmInterface& gemm = interface();
  Signature signature;
  const auto add = [&](std::string name, std::string_view doc, DataType type, std::vector<Dimension> shape,
                       int64_t alignment) -> Argument& {
    Argument argument;
    argument.name = std::move(name);
    argument.doc = doc;
    argument.dtype = type;
    argument.alignment = static_cast<int>(alignment);
    argument.shape = std::move(shape);
    signature.push_back(std::move(argument));
    return signature.back();
  };
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kVector)
      add(operand.name, operand.doc, dtype(), vector_shape(gemm, gemm.n), vector_alignment(dtype()));
    if (operand.kind == GemmOperandKind::kMatrix)
      add(operand.name, operand.doc, dtype(), shape_of(gemm, gemm.m, gemm.n), kAlignment);
  }
  add(gemm.a.name, gemm.a.doc, dtype(), shape_of(gemm, gemm.a, gemm.m, gemm.k), kAlignment);
  add(gemm.b.name, gemm.b.doc, dtype(), shape_of(gemm, gemm.b, gemm.k, gemm.n), kAlignment);
  if (gemm.per_sequence()) {
    signature.push_back(offsets_argument("seq_offsets", *gemm.offsets_dtype, kSequenceAxis));
    signature.push_back(max_seq_len_argument());
  }
  const auto add_scalar = [&](const std::string& name, std::string_view doc) {
    signature.push_back(scalar_argument(name, ArgumentKind::kFloat, doc));
  };
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kScalar) add_scalar(operand.name, operand.doc);
  }
  if (gemm.column_sums && !gemm.column_sums->scale.empty())
    add_scalar(gemm.column_sums->scale, gemm.column_sums->scale_doc);
  const auto set_output = [&](Argument& argument) {
    argument.role = ArgumentRole::kOutput;
    argument.accumulated = gemm.sums_rows();
  };
  set_output(add("out", gemm.doc, dtype(), shape_of(gemm, gemm.m, gemm.n), kAlignment));
  if (gemm.column_sums) {
    set_output(add(gemm.column_sums->name, gemm.column_sums->doc, dtype(), vector_shape(gemm, gemm.summed_columns()),
                   vector_alignment(dtype())));
  }
  return signature;
}

Work GemmSpec::work(Direction direction, const Lengths& lengths) const {
  const GemmInterface& gemm = interface();
  const auto extent = [&](int64_t value) { return static_cast<double>(extent_in(value, lengths.total_rows())); };
  Work work;
  work.flops = 2 * extent(gemm.m) * extent(gemm.n) * extent(gemm.k);
  for (const Argument& argument : signature(direction)) {
    if (argument.kind != ArgumentKind::kTensor) continue;
    double elements = 1;
    for (const Dimension& dimension : argument.shape)
      elements *= static_cast<double>(gemm_size(dimension, lengths.rows));
    work.bytes += elements * static_cast<double>(size_of(argument.dtype));
  }
  return work;
}

std::vector<HostValue> GemmSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  const GemmInterface& gemm = interface();
  // So that elements of the product have a deviation of about 1, as those of its first factor.
  const auto sequences = static_cast<int64_t>(gemm.per_sequence() ? lengths.rows.size() : 1);
  const int64_t rows = lengths.total_rows() / std::max<int64_t>(1, sequences);
  const double deviation = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, extent_in(gemm.k, rows))));
  std::vector<HostValue> values;
  for (const Argument& argument : signature(direction)) {
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

void GemmSpec::reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const {
  const GemmInterface& gemm = interface();
  const Signature arguments = signature(direction);
  const auto value_of = [&](std::string_view name) -> HostValue& {
    return values[static_cast<size_t>(find_argument(arguments, name))];
  };
  const int64_t n = gemm.n;
  const HostTensor &a = value_of(gemm.a.name).tensor, &b = value_of(gemm.b.name).tensor;
  HostTensor& out = value_of("out").tensor;
  const std::vector<int64_t> rows = gemm.per_sequence() ? lengths.rows : std::vector<int64_t>{lengths.total_rows()};
  out = gemm_tensor(arguments[static_cast<size_t>(find_argument(arguments, "out"))], rows);
  const auto compute_row = [&](const GemmProduct& product, int64_t row) {
    std::vector<double> sums(static_cast<size_t>(n), 0);
    for (int64_t i = 0; i < product.k; ++i) {
      const double factor = gemm_element(gemm.a, a, product, row, i);
      for (int64_t column = 0; column < n; ++column)
        sums[static_cast<size_t>(column)] += factor * gemm_element(gemm.b, b, product, i, column);
    }
    for (int64_t column = 0; column < n; ++column) {
      const std::vector<double> operands = gemm_operands(gemm, arguments, values, product, row, column);
      out.reals[place_in(out, product, row, column)] =
          reference_epilogue(sums[static_cast<size_t>(column)], column, operands);
    }
  };
  for (const GemmProduct& product : gemm_products(gemm, rows)) {
    parallel_for(static_cast<size_t>(product.m), threads_for(product.m, 1),
                 [&](int, size_t row) { compute_row(product, static_cast<int64_t>(row)); });
  }
  if (!gemm.column_sums) return;
  const double scale = column_scale(gemm, arguments, values);
  value_of(gemm.column_sums->name).tensor = sums_of_columns(gemm, arguments, values, rows, [scale](const auto& terms) {
    return scale * std::accumulate(terms.begin(), terms.end(), 0.0);
  });
}

double GemmSpec::error_bound(Direction) const {
  switch (dtype()) {
    case DataType::kFp32:
      return is_ieee() ? 1e-5 : 1e-3;
    case DataType::kFp16:
      return 2e-3;
    default:
      return 6e-3;
  }
}

}  // namespace hstujit
