// Random inputs of the attention operators.
#include <algorithm>
#include <cmath>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
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

HostTensor offsets_tensor(const std::vector<int64_t>& rows) {
  HostTensor offsets;
  offsets.integers = offsets_of(rows);
  offsets.shape = {static_cast<int64_t>(offsets.integers.size())};
  return offsets;
}

HostValue tensor_value(HostTensor tensor) { return {std::move(tensor), 0}; }
HostValue scalar_value(double scalar) { return {{}, scalar}; }

}  // namespace

std::vector<HostValue> AttentionSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  const auto& p = params_;
  HostTensor offsets = offsets_tensor(lengths.rows);
  HostTensor query_offsets =
      offsets_tensor(lengths.rows_of(query_rows_ == QueryRows::kAll ? kSequenceAxis : kQueryAxis));
  const int64_t total = offsets.integers.back(), queries = query_offsets.integers.back();

  // alpha = 1 / Dqk and this deviation of q and k give scores alpha * dot of deviation 2: the bend of silu is in reach,
  // and outputs stay far above the smallest numbers of fp16.
  const double deviation = std::sqrt(2.0) * std::pow(static_cast<double>(p.attn_dim), 0.25);
  // The derivative of relu jumps at 0: rounding may put a score on its other side, and then an implementation is as
  // right as the reference that it differs from. With exact dot products there is one answer.
  const double grid = direction == Direction::kBackward && p.score == "relu" ? kExactGrid : 0;
  std::vector<HostValue> values;
  values.push_back(tensor_value(normal_tensor({queries, p.heads, p.attn_dim}, deviation, p.dtype, seed, 0, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.attn_dim}, deviation, p.dtype, seed, 1, grid)));
  values.push_back(tensor_value(normal_tensor({total, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 2)));
  if (direction == Direction::kBackward)
    values.push_back(tensor_value(normal_tensor({queries, p.heads, p.hidden_dim}, 1.0, p.dtype, seed, 3)));
  values.push_back(tensor_value(std::move(offsets)));
  if (query_rows_ == QueryRows::kLastJagged) values.push_back(tensor_value(std::move(query_offsets)));
  if (p.num_targets) {
    HostTensor targets;
    targets.integers = lengths.num_targets;
    targets.integers.resize(lengths.rows.size(), 0);
    targets.shape = {static_cast<int64_t>(targets.integers.size())};
    values.push_back(tensor_value(std::move(targets)));
  }
  if (p.has_rab()) {
    // alpha * rab of deviation 1/2, beside 2 of the product.
    const std::vector<int64_t> shape = {static_cast<int64_t>(lengths.rows.size()), p.rab_heads, lengths.max_seq_len,
                                        lengths.max_seq_len};
    const double bias_deviation = 0.5 * static_cast<double>(p.attn_dim);
    values.push_back(tensor_value(normal_tensor(shape, bias_deviation, p.dtype, seed, 4, grid)));
  }
  if (p.has_attn_scale()) {
    const double least = 1 / std::max(1.0, static_cast<double>(lengths.max_seq_len));
    values.push_back(tensor_value(factors_tensor(p.attn_scale == "rows" ? queries : 1, least, seed, 5)));
  }
  if (direction == Direction::kBackward && p.adds_gradients) {
    if (p.returns_drab()) {
      const std::vector<int64_t> shape = {static_cast<int64_t>(lengths.rows.size()), p.rab_heads, lengths.max_seq_len,
                                          lengths.max_seq_len};
      values.push_back(tensor_value(normal_tensor(shape, 1.0, p.dtype, seed, 6)));
    }
    if (p.returns_dattn_scale())
      values.push_back(tensor_value(factors_tensor(p.attn_scale == "rows" ? queries : 1, 1.0, seed, 7)));
  }
  values.push_back(scalar_value(static_cast<double>(lengths.max_seq_len)));
  if (query_rows_ != QueryRows::kAll) {
    const std::vector<int64_t>& rows = lengths.rows_of(kQueryAxis);
    const auto max = std::max_element(rows.begin(), rows.end());
    values.push_back(scalar_value(max == rows.end() ? 0 : static_cast<double>(*max)));
  }
  values.push_back(scalar_value(1.0 / static_cast<double>(p.attn_dim)));
  values.push_back(scalar_value(0));
  values.resize(signature(direction).size());  // the outputs
  return values;
}

}  // namespace hstujit
