#include "compiler/spec/gemm_spec.h"

#include <algorithm>

#include "compiler/spec/alignment.h"
#include "compiler/spec/gemm_products.h"
#include "compiler/spec/sequence_arguments.h"

namespace hstujit {

namespace {

// Shape of tensors with so many rows and columns, behind an axis of sequences where they have no rows of those.
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

// Shape of a value for each of so many columns.
std::vector<Dimension> vector_shape(const GemmInterface& gemm, int64_t columns) {
  std::vector<Dimension> shape = {Dimension::constant(columns)};
  if (gemm.per_sequence()) shape.insert(shape.begin(), Dimension::of("B"));
  return shape;
}

}  // namespace

int64_t GemmSpec::alignment_of(int64_t columns) const { return std::min(alignment(), row_alignment(columns, dtype())); }

int64_t GemmSpec::least_alignment() const {
  const GemmInterface& gemm = interface();
  return std::min({alignment_of(gemm.columns_of_a()), alignment_of(gemm.columns_of_b()), alignment_of(gemm.n)});
}

Signature GemmSpec::signature(Direction) const {
  const GemmInterface& gemm = interface();
  Signature signature;
  // Kernels read and write two neighbours of a vector at a time, where they are aligned to that.
  const int64_t of_vector = 2 * static_cast<int64_t>(size_of(dtype())), of_matrix = alignment();
  const auto add = [&](std::string name, std::string_view doc, DataType type, std::vector<Dimension> shape,
                       int64_t most_alignment) -> Argument& {
    Argument argument;
    argument.name = std::move(name);
    argument.doc = doc;
    argument.dtype = type;
    argument.alignment = static_cast<int>(std::min(most_alignment, alignment_of(shape.back().bias)));
    argument.shape = std::move(shape);
    signature.push_back(std::move(argument));
    return signature.back();
  };
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kVector)
      add(operand.name, operand.doc, dtype(), vector_shape(gemm, gemm.n), of_vector);
    if (operand.kind == GemmOperandKind::kMatrix)
      add(operand.name, operand.doc, dtype(), shape_of(gemm, gemm.m, gemm.n), of_matrix);
  }
  add(gemm.a.name, gemm.a.doc, dtype(), shape_of(gemm, gemm.a, gemm.m, gemm.k), of_matrix);
  add(gemm.b.name, gemm.b.doc, dtype(), shape_of(gemm, gemm.b, gemm.k, gemm.n), of_matrix);
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
  set_output(add("out", gemm.doc, dtype(), shape_of(gemm, gemm.m, gemm.n), of_matrix));
  if (gemm.column_sums) {
    set_output(add(gemm.column_sums->name, gemm.column_sums->doc, dtype(), vector_shape(gemm, gemm.summed_columns()),
                   of_vector));
  }
  return signature;
}

Work GemmSpec::work(Direction direction, const Lengths& lengths) const {
  const GemmInterface& gemm = interface();
  const auto extent = [&](int64_t value) { return static_cast<double>(gemm_extent(value, lengths.total_rows())); };
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
