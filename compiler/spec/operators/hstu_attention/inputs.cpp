// Random inputs of the attention operators.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/spec/operators/hstu_attention/attention_reference.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"
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

// Intervals of a row that sees columns of a sequence of n rows, in the manner that `bits` chooses: semi-local, causal,
// anything at all, nothing, everything, short pieces. Long sequences, which times are of, are semi-local, as in models
// that have such tensors, and as work is counted (mask_expression.h).
void draw_intervals(std::vector<int64_t>& ends, int64_t row, int64_t n, uint64_t bits, uint64_t seed) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  const auto below = [&](size_t number, int64_t limit) {
    return static_cast<int64_t>(mix_bits(seed + number) % static_cast<uint64_t>(std::max<int64_t>(limit, 1)));
  };
  constexpr int64_t kLong = 1500;
  const int64_t local = std::min(1 + n / 8, AssumedIntervals::kLocal),
                leading = std::min(n / 10, AssumedIntervals::kFirst);
  const uint64_t manner = n < kLong ? bits % 8 : 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool begins = i % 2 == 1;
    switch (manner) {
      case 3:
        ends[i] = i == 0 ? row + 1 : n;
        break;
      case 4:
        ends[i] = below(i, 3 * n + 1) - n;
        break;
      case 5:
        ends[i] = begins ? kMost : kLeast;
        break;
      case 6:
        ends[i] = begins ? kLeast : kMost;
        break;
      case 7:
        ends[i] = i == 0 ? 0 : begins ? below(i, n) : ends[i - 1] + below(i, 16);
        break;
      default:
        ends[i] = i == 0   ? std::min(leading, row + 1)
                  : i == 1 ? std::max(leading, row - local + 1)
                  : i == 2 ? row + 1
                           : 0;
    }
  }
}

// Neighbouring rows draw theirs in the same manner, so that tiles may be full or empty.
HostTensor intervals_tensor(const std::vector<int64_t>& shape, const std::vector<int64_t>& sequence_rows,
                            const std::vector<int64_t>& query_rows, uint64_t seed, uint64_t stream) {
  constexpr int64_t kAlike = 80;
  HostTensor tensor;
  tensor.shape = shape;
  const int64_t heads = shape[0], queries = shape[2];
  tensor.integers.resize(static_cast<size_t>(heads * shape[1] * queries));
  std::vector<int64_t> ends(static_cast<size_t>(shape[1]));
  int64_t first = 0;
  for (size_t b = 0; b < query_rows.size(); first += query_rows[b++]) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t r = 0; r < query_rows[b]; ++r) {
        const int64_t query = first + r;
        const auto index = static_cast<uint64_t>(head * queries + query);
        const uint64_t alike = random_bits(seed, stream, static_cast<uint64_t>(head * queries + query / kAlike));
        draw_intervals(ends, sequence_rows[b] - query_rows[b] + r, sequence_rows[b], alike,
                       random_bits(seed, stream + 1, index));
        for (size_t i = 0; i < ends.size(); ++i)
          tensor.integers[static_cast<size_t>((head * shape[1] + static_cast<int64_t>(i)) * queries + query)] = ends[i];
      }
    }
  }
  return tensor;
}

// Draws operands as what they are used for asks: each from a stream of its own, behind those of q, k, v and dout.
struct OperandDraw {
  const Lengths& lengths;
  const OperandSizes& sizes;
  const std::vector<int64_t>& query_rows;  // of each sequence
  double attn_dim, grid;
  uint64_t seed;

  static constexpr uint64_t kBias = 4, kFactor = 5, kBeforeBias = 6, kBeforeFactor = 7, kOthers = 8;

  HostTensor input(const Operand& operand, size_t index) const {
    const std::vector<int64_t> shape = operand.kind->sizes(operand, sizes);
    switch (operand.use) {
      case OperandUse::kMask:
        return operand.kind == &intervals_kind()
                   ? intervals_tensor(shape, lengths.rows, query_rows, seed, kOthers + 2 * index)
                   : counts(operand.name);
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
  const std::vector<int64_t>& rows_of_q = lengths.rows_of(query_rows == QueryRows::kAll ? kSequenceAxis : kQueryAxis);
  HostTensor query_offsets = offsets_tensor(rows_of_q);
  const int64_t total = offsets.integers.back(), queries = query_offsets.integers.back();

  // alpha = 1 / Dqk and this deviation of q and k give scores alpha * dot of deviation 2: the bend of silu is in reach,
  // and outputs stay far above the smallest numbers of fp16.
  const double deviation = std::sqrt(2.0) * std::pow(static_cast<double>(p.attn_dim), 0.25);
  // The derivative of relu jumps at 0: rounding may put a score on its other side, and then an implementation is as
  // right as the reference that it differs from. With exact dot products there is one answer. A text may jump, too.
  const bool bends = direction == Direction::kBackward && (p.score == "relu" || p.softmax_score == "relu");
  const bool jumps = ScoreFormula(p, 1).may_jump() || ScoreFormula(with_softmax_score(p), 1).may_jump();
  const double grid = bends || jumps ? kExactGrid : 0;
  std::vector<HostValue> values;
  values.push_back(tensor_value(normal_tensor({queries, p.heads, p.attn_dim}, deviation, p.dtype, seed, 0, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.attn_dim}, deviation, p.dtype, seed, 1, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 2)));
  if (direction == Direction::kBackward)
    values.push_back(tensor_value(normal_tensor({queries, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 3)));
  values.push_back(tensor_value(std::move(offsets)));
  if (query_rows == QueryRows::kLastJagged) values.push_back(tensor_value(std::move(query_offsets)));
  const OperandSizes sizes = {static_cast<int64_t>(lengths.rows.size()), total, queries, lengths.max_seq_len};
  const OperandDraw draw = {lengths, sizes, rows_of_q, static_cast<double>(p.attn_dim), grid, seed};
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
  if (p.attn_dropout) {
    constexpr int64_t kSeed = 0x123456789abcd, kOffset = 0x500000003;
    values.push_back(scalar_value(0.3));
    values.push_back(p.attn_seed_tensor ? tensor_value({{1}, {}, {kSeed}}) : scalar_value(static_cast<double>(kSeed)));
    values.push_back(scalar_value(static_cast<double>(kOffset)));
  }
  values.resize(spec.signature(direction).size());  // the outputs
  return values;
}

}  // namespace hstujit
