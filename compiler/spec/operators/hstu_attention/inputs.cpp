// Random inputs of the attention operators.
#include <algorithm>
#include <cmath>

#include "compiler/spec/operators/hstu_attention/attention_reference.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// A grid on which products of two numbers and sums of a few hundred of them are exact in fp32, as are the numbers in
// fp16 and tf32.
constexpr double kExactGrid = 1.0 / 64;

double to_grid(double value, double grid) { return grid > 0 ? grid * std::round(value / grid) : value; }

// Multiples of `grid` where it is above 0.
HostTensor normal_tensor(std::vector<int64_t> shape, double deviation, DataType type, uint64_t seed, uint64_t stream,
                         double grid = 0) {
  HostTensor tensor;
  const auto width = static_cast<size_t>(shape.back());
  size_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= static_cast<size_t>(shape[d]);
  tensor.shape = std::move(shape);
  tensor.reals.resize(rows * width);
  const int threads = threads_for(static_cast<int64_t>(tensor.reals.size()), 4096);
  parallel_for(rows, threads, [&](int, size_t row) {
    for (size_t index = row * width; index < (row + 1) * width; ++index) {
      tensor.reals[index] = round_to(type, to_grid(deviation * random_normal(seed, stream, index), grid));
    }
  });
  return tensor;
}

// Factors of either sign, from 1 to 3 times `least`.
HostTensor factors_tensor(int64_t count, double least, uint64_t seed, uint64_t stream) {
  HostTensor tensor;
  tensor.shape = {count};
  for (int64_t index = 0; index < count; ++index) {
    const uint64_t bits = random_bits(seed, stream, static_cast<uint64_t>(index));
    const double size = least * (1 + 2 * random_unit(bits));
    tensor.reals.push_back(round_to(DataType::kFp32, (bits & 1) != 0 ? -size : size));
  }
  return tensor;
}

// From 0 to 1023.
HostTensor integers_tensor(const std::vector<int64_t>& shape, uint64_t seed, uint64_t stream) {
  HostTensor tensor;
  tensor.shape = shape;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  for (int64_t index = 0; index < count; ++index)
    tensor.integers.push_back(static_cast<int64_t>(random_bits(seed, stream, static_cast<uint64_t>(index)) % 1024));
  return tensor;
}

HostTensor offsets_tensor(const std::vector<int64_t>& rows) {
  HostTensor offsets;
  offsets.integers = offsets_of(rows);
  offsets.shape = {static_cast<int64_t>(offsets.integers.size())};
  return offsets;
}

// Draws operands as what they are used for asks: each from a stream of its own, behind those of q, k, v and dout.
struct OperandDraw {
  const Lengths& lengths;
  const OperandSizes& sizes;
  double attn_dim, grid;
  uint64_t seed;

  static constexpr uint64_t kBias = 4, kFactor = 5, kBeforeBias = 6, kBeforeFactor = 7, kOthers = 8;

  HostTensor input(const Operand& operand, size_t index) const {
    const std::vector<int64_t> shape = operand.kind->sizes(operand, sizes);
    switch (operand.use) {
      case OperandUse::kMask:
        return counts(operand.name);
      case OperandUse::kBias:  // alpha times a bias has deviation 1/2, beside 2 of the product
        return normal_tensor(shape, 0.5 * attn_dim, operand.dtype, seed, kBias, grid);
      case OperandUse::kFactor:
        return factors_tensor(shape[0], 1 / std::max(1.0, static_cast<double>(sizes.max_seq_len)), seed, kFactor);
      case OperandUse::kScore:
        break;
    }
    return is_integer(operand.dtype) ? integers_tensor(shape, seed, kOthers + 2 * index)
                                     : normal_tensor(shape, 1.0, operand.dtype, seed, kOthers + 2 * index, grid);
  }

  HostTensor before(const Operand& operand, size_t index) const {
    const std::vector<int64_t> shape = operand.kind->sizes(operand, sizes);
    if (operand.use == OperandUse::kFactor) return factors_tensor(shape[0], 1.0, seed, kBeforeFactor);
    const uint64_t stream = operand.use == OperandUse::kBias ? kBeforeBias : kOthers + 2 * index + 1;
    return normal_tensor(shape, 1.0, operand.dtype, seed, stream);
  }

 private:
  // One for each sequence.
  HostTensor counts(std::string_view name) const {
    HostTensor counts;
    counts.integers = lengths.counts_of(name);
    counts.integers.resize(lengths.rows.size(), 0);
    counts.shape = {static_cast<int64_t>(counts.integers.size())};
    return counts;
  }
};

HostValue tensor_value(HostTensor tensor) { return {std::move(tensor), 0}; }
HostValue scalar_value(double scalar) { return {{}, scalar}; }

}  // namespace

std::vector<HostValue> attention_inputs(const AttentionSpec& spec, Direction direction, const Lengths& lengths,
                                        uint64_t seed) {
  const auto& p = spec.params();
  const QueryRows query_rows = spec.query_rows();
  const std::vector<Operand>& operands = spec.operands();
  HostTensor offsets = offsets_tensor(lengths.rows);
  HostTensor query_offsets =
      offsets_tensor(lengths.rows_of(query_rows == QueryRows::kAll ? kSequenceAxis : kQueryAxis));
  const int64_t total = offsets.integers.back(), queries = query_offsets.integers.back();

  // alpha = 1 / Dqk and this deviation of q and k give scores alpha * dot of deviation 2: the bend of silu is in reach,
  // and outputs stay far above the smallest numbers of fp16.
  const double deviation = std::sqrt(2.0) * std::pow(static_cast<double>(p.attn_dim), 0.25);
  // The derivative of relu jumps at 0: rounding may put a score on its other side, and then an implementation is as
  // right as the reference that it differs from. With exact dot products there is one answer. A text may jump, too.
  const bool bends = direction == Direction::kBackward && p.score == "relu";
  const double grid = bends || ScoreFormula(p, 1).may_jump() ? kExactGrid : 0;
  std::vector<HostValue> values;
  values.push_back(tensor_value(normal_tensor({queries, p.heads, p.attn_dim}, deviation, p.dtype, seed, 0, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.attn_dim}, deviation, p.dtype, seed, 1, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 2)));
  if (direction == Direction::kBackward)
    values.push_back(tensor_value(normal_tensor({queries, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 3)));
  values.push_back(tensor_value(std::move(offsets)));
  if (query_rows == QueryRows::kLastJagged) values.push_back(tensor_value(std::move(query_offsets)));
  const OperandSizes sizes = {static_cast<int64_t>(lengths.rows.size()), total, queries, lengths.max_seq_len};
  const OperandDraw draw = {lengths, sizes, static_cast<double>(p.attn_dim), grid, seed};
  for (size_t index = 0; index < operands.size(); ++index)
    values.push_back(tensor_value(draw.input(operands[index], index)));
  if (direction == Direction::kBackward && p.adds_gradients) {
    for (size_t index = 0; index < operands.size(); ++index) {
      if (operands[index].gradient) values.push_back(tensor_value(draw.before(operands[index], index)));
    }
  }
  values.push_back(scalar_value(static_cast<double>(lengths.max_seq_len)));
  if (query_rows != QueryRows::kAll) {
    const std::vector<int64_t>& rows = lengths.rows_of(kQueryAxis);
    const auto max = std::max_element(rows.begin(), rows.end());
    values.push_back(scalar_value(max == rows.end() ? 0 : static_cast<double>(*max)));
  }
  values.push_back(scalar_value(1.0 / static_cast<double>(p.attn_dim)));
  values.push_back(scalar_value(0));
  values.resize(spec.signature(direction).size());  // the outputs
  return values;
}

}  // namespace hstujit
