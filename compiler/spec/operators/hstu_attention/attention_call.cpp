#include "compiler/spec/operators/hstu_attention/attention_call.h"

#include <algorithm>

#include "compiler/spec/rounding.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// As a kernel is given it: below 2^-126 that shows.
double alpha_of(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values) {
  return round_to(DataType::kFp32,
                  values[static_cast<size_t>(find_argument(spec.signature(direction), "alpha"))].scalar);
}

// In the order in which the parameters declare them.
std::vector<const HostTensor*> own_tensors(const AttentionSpec& spec, Direction direction,
                                           const std::vector<HostValue>& values) {
  const Signature signature = spec.signature(direction);
  std::vector<const HostTensor*> tensors;
  for (const Operand& operand : spec.operands()) {
    if (operand.is_own())
      tensors.push_back(&values[static_cast<size_t>(find_argument(signature, operand.name))].tensor);
  }
  return tensors;
}

}  // namespace

AttentionCall::AttentionCall(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values)
    : params(spec.params()),
      bias_operand(spec.operand(OperandUse::kBias)),
      factor_operand(spec.operand(OperandUse::kFactor)),
      alpha(alpha_of(spec, direction, values)),
      score(params, alpha, own_tensors(spec, direction, values)),
      softmax_score(with_softmax_score(params), alpha, own_tensors(spec, direction, values)) {
  const Signature arguments = spec.signature(direction);
  const auto has = [&](std::string_view name) { return find_argument(arguments, name) >= 0; };
  const auto value = [&](std::string_view name) -> const HostValue& {
    return values[static_cast<size_t>(find_argument(arguments, name))];
  };
  const auto input = [&](std::string_view name) { return has(name) ? value(name).tensor.reals.data() : nullptr; };
  q = input("q");
  k = input("k");
  v = input("v");
  dout = input("dout");
  const bool backward = direction == Direction::kBackward;
  biases = bias_operand == nullptr ? nullptr : input(bias_operand->name);
  factors = factor_operand == nullptr ? nullptr : input(factor_operand->name);
  returns_dbias = backward && params.returns_dbias();
  returns_dfactors = backward && params.returns_dfactors();
  max_seq_len = static_cast<int64_t>(value("max_seq_len").scalar);
  const double scaling = value("scaling_seqlen").scalar;
  scale = scaling > 0 ? scaling : value("max_seq_len").scalar;

  offsets_ = queries_ = value("seq_offsets").tensor.integers;
  if (spec.query_rows() == QueryRows::kLastJagged) queries_ = value("seq_offsets_q").tensor.integers;
  if (spec.query_rows() == QueryRows::kLast) {
    const auto each = static_cast<int64_t>(value("max_delta_len").scalar);
    for (size_t b = 0; b < queries_.size(); ++b) queries_[b] = static_cast<int64_t>(b) * each;
  }
  if (params.num_targets) targets_ = value("num_targets").tensor.integers;
  if (params.num_contexts) contexts_ = value("num_contexts").tensor.integers;
  if (params.attn_dropout) {
    const HostValue& seed = value(params.attn_seed_tensor ? "seed_tensor" : "seed");
    dropout = AttentionDropout(value(kDropoutRatio).scalar,
                               params.attn_seed_tensor ? seed.tensor.integers[0] : static_cast<int64_t>(seed.scalar),
                               static_cast<int64_t>(value("offset").scalar));
  }
  mask_reads_ = spec.mask_reads();
  if (params.has_intervals()) intervals_ = value("attn_func").tensor.integers.data();
}

bool AttentionCall::valid(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const {
  if (i < 0) return false;
  if (mask_reads_) return score.mask_holds(pair(rows, head, i, j));
  if (intervals_ == nullptr) return hstu_attention_valid(params, i, j, rows.n, rows.t, rows.c);
  const int64_t query = rows.first_query + i - (rows.n - rows.queries);
  const int64_t first = head / (params.heads / params.attn_func_heads) * params.attn_func;
  const auto end = [&](int64_t number) { return intervals_[(first + number) * query_rows() + query]; };
  bool valid = j < end(0);
  for (int64_t number = 1; number < params.attn_func; number += 2)
    valid = valid || (end(number) <= j && j < end(number + 1));
  return valid;
}

void AttentionCall::for_each_head(const std::vector<bool>& chosen,
                                  const std::function<void(const SequenceRows&, int64_t head)>& body) const {
  const int64_t together = returns_dbias ? params.heads / bias_operand->heads : 1;
  const auto groups = static_cast<size_t>(params.heads / together);
  const int threads = threads_for(rows() * params.heads, 64);
  parallel_for(static_cast<size_t>(sequences()) * groups, threads, [&](int, size_t index) {
    const size_t b = index / groups;
    if (!chosen.empty() && !chosen[b]) return;
    const int64_t n = offsets_[b + 1] - offsets_[b];
    const SequenceRows sequence = {static_cast<int64_t>(b),
                                   offsets_[b],
                                   n,
                                   targets_.empty() ? 0 : targets_[b],
                                   contexts_.empty() ? 0 : std::clamp<int64_t>(contexts_[b], 0, n),
                                   queries_[b],
                                   queries_[b + 1] - queries_[b]};
    for (int64_t i = 0; i < together; ++i) body(sequence, static_cast<int64_t>(index % groups) * together + i);
  });
}

}  // namespace hstujit
