#include "compiler/spec/gemm_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

Dimension axis(int64_t extent) {
  return extent == GemmInterface::kRows ? Dimension::of(std::string(kSequenceAxis)) : Dimension::constant(extent);
}

int64_t extent_in(int64_t extent, const Lengths& lengths) {
  return extent == GemmInterface::kRows ? lengths.total_rows() : extent;
}

std::vector<Dimension> shape_of(const GemmFactor& factor, int64_t rows, int64_t columns) {
  return factor.transposed ? std::vector<Dimension>{axis(columns), axis(rows)}
                           : std::vector<Dimension>{axis(rows), axis(columns)};
}

// Elements vary around `usual`, with this deviation.
HostValue random_tensor(const Argument& argument, const Lengths& lengths, double usual, double deviation, uint64_t seed,
                        uint64_t stream) {
  HostValue value;
  HostTensor& tensor = value.tensor;
  int64_t count = 1;
  for (const Dimension& dimension : argument.shape) {
    tensor.shape.push_back(dimension.is_constant() ? dimension.bias : lengths.total_rows());
    count *= tensor.shape.back();
  }
  constexpr size_t kBlock = 1 << 14;
  tensor.reals.resize(static_cast<size_t>(count));
  parallel_blocks(tensor.reals.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      tensor.reals[i] = round_to(argument.dtype, usual + deviation * random_normal(seed, stream, i));
  });
  return value;
}

// Element (row, column) of a matrix with `columns` columns that a factor holds.
double element(const GemmFactor& factor, const HostTensor& tensor, int64_t row, int64_t column) {
  const int64_t stride = tensor.shape[1];
  return tensor.reals[static_cast<size_t>(factor.transposed ? column * stride + row : row * stride + column)];
}

}  // namespace

Signature GemmSpec::signature(Direction) const {
  const GemmInterface& gemm = interface();
  Signature signature;
  const auto add = [&](std::string name, std::string_view doc, DataType type,
                       std::vector<Dimension> shape) -> Argument& {
    Argument argument;
    argument.name = std::move(name);
    argument.doc = doc;
    argument.dtype = type;
    argument.alignment = static_cast<int>(shape.size() == 2 ? kAlignment : static_cast<int64_t>(size_of(type)) * 2);
    argument.shape = std::move(shape);
    signature.push_back(std::move(argument));
    return signature.back();
  };
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kVector) add(operand.name, operand.doc, operand.dtype, {axis(gemm.n)});
    if (operand.kind == GemmOperandKind::kMatrix)
      add(operand.name, operand.doc, operand.dtype, {axis(gemm.m), axis(gemm.n)});
  }
  add(gemm.a.name, gemm.a.doc, dtype(), shape_of(gemm.a, gemm.m, gemm.k));
  add(gemm.b.name, gemm.b.doc, dtype(), shape_of(gemm.b, gemm.k, gemm.n));
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind != GemmOperandKind::kScalar) continue;
    Argument argument;
    argument.name = operand.name;
    argument.kind = ArgumentKind::kFloat;
    argument.doc = operand.doc;
    signature.push_back(std::move(argument));
  }
  Argument& out = add("out", gemm.doc, dtype(), {axis(gemm.m), axis(gemm.n)});
  out.role = ArgumentRole::kOutput;
  out.accumulated = gemm.sums_rows();
  return signature;
}

Work GemmSpec::work(Direction direction, const Lengths& lengths) const {
  const GemmInterface& gemm = interface();
  const auto extent = [&](int64_t value) { return static_cast<double>(extent_in(value, lengths)); };
  Work work;
  work.flops = 2 * extent(gemm.m) * extent(gemm.n) * extent(gemm.k);
  for (const Argument& argument : signature(direction)) {
    if (argument.kind != ArgumentKind::kTensor) continue;
    double elements = 1;
    for (const Dimension& dimension : argument.shape)
      elements *= static_cast<double>(dimension.is_constant() ? dimension.bias : lengths.total_rows());
    work.bytes += elements * static_cast<double>(size_of(argument.dtype));
  }
  return work;
}

std::vector<HostValue> GemmSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  const GemmInterface& gemm = interface();
  // So that elements of the product have a deviation of 1, as those of its first factor.
  const double deviation = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, extent_in(gemm.k, lengths))));
  std::vector<HostValue> values;
  for (const Argument& argument : signature(direction)) {
    if (argument.role == ArgumentRole::kOutput) {
      values.emplace_back();
      continue;
    }
    const auto operand = std::find_if(gemm.operands.begin(), gemm.operands.end(),
                                      [&](const GemmOperand& found) { return found.name == argument.name; });
    const double usual = operand == gemm.operands.end() ? 0 : operand->usual;
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
  const int64_t m = extent_in(gemm.m, lengths), n = gemm.n, k = extent_in(gemm.k, lengths);
  const HostTensor &a = value_of(gemm.a.name).tensor, &b = value_of(gemm.b.name).tensor;
  HostTensor& out = value_of("out").tensor;
  out.shape = {m, n};
  out.reals.assign(static_cast<size_t>(m * n), 0);
  parallel_for(static_cast<size_t>(m), threads_for(m, 1), [&](int, size_t line) {
    const auto row = static_cast<int64_t>(line);
    std::vector<double> sums(static_cast<size_t>(n), 0);
    for (int64_t i = 0; i < k; ++i) {
      const double factor = element(gemm.a, a, row, i);
      for (int64_t column = 0; column < n; ++column)
        sums[static_cast<size_t>(column)] += factor * element(gemm.b, b, i, column);
    }
    std::vector<double> operands(gemm.operands.size());
    for (int64_t column = 0; column < n; ++column) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const HostValue& value = value_of(gemm.operands[i].name);
        switch (gemm.operands[i].kind) {
          case GemmOperandKind::kScalar:
            operands[i] = value.scalar;
            break;
          case GemmOperandKind::kVector:
            operands[i] = value.tensor.reals[static_cast<size_t>(column)];
            break;
          case GemmOperandKind::kMatrix:
            operands[i] = value.tensor.reals[static_cast<size_t>(row * n + column)];
            break;
        }
      }
      out.reals[static_cast<size_t>(row * n + column)] =
          reference_epilogue(sums[static_cast<size_t>(column)], column, operands);
    }
  });
}

double GemmSpec::error_bound(Direction) const { return dtype() == DataType::kFp16 ? 2e-3 : 6e-3; }

}  // namespace hstujit
