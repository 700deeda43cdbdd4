#include "compiler/spec/operators/hstu_attention/attention_call.h"

#include <cmath>
#include <numbers>

#include "compiler/spec/rounding.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_density(double x) { return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double zero(double) { return 0; }
double one(double) { return 1; }

// silu is h + h t with h = x / 2 and t = tanh(h), and its derivative (1 + t + h (1 - t^2)) / 2.
Score silu() {
  return {[](double x) { return x * sigmoid(x); }, [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); },
          [](double x) { return sigmoid(x) * sigmoid(-x) * (2 - x * std::tanh(x / 2)); },
          [](double x) { return x / 2 * std::tanh(x / 2); },
          [](double x) { return (0.5 - x / 2 * std::tanh(x / 2)) * std::tanh(x / 2); }};
}

// sigmoid is (1 + t) / 2 with t = tanh(x / 2), and its derivative (1 - t^2) / 4.
Score sigmoid_score() {
  return {sigmoid, [](double x) { return sigmoid(x) * sigmoid(-x); },
          [](double x) { return -sigmoid(x) * sigmoid(-x) * std::tanh(x / 2); },
          [](double x) { return std::tanh(x / 2) / 2; },
          [](double x) { return std::tanh(x / 2) * std::tanh(x / 2) / 2; }};
}

Score tanh_score() {
  return {[](double x) { return std::tanh(x); }, [](double x) { return 1 - std::tanh(x) * std::tanh(x); },
          [](double x) { return -2 * std::tanh(x) * (1 - std::tanh(x) * std::tanh(x)); },
          [](double x) { return std::tanh(x); }, [](double x) { return 2 * std::tanh(x) * std::tanh(x); }};
}

// gelu is h + h e with h = x / 2 and e = erf(x / sqrt(2)), and its derivative (1 + e) / 2 + x times the density.
Score gelu() {
  return {[](double x) { return x * normal_below(x); },
          [](double x) { return normal_below(x) + x * normal_density(x); },
          [](double x) { return normal_density(x) * (2 - x * x); },
          [](double x) { return x / 2 * std::erf(x / std::numbers::sqrt2); },
          [](double x) { return std::abs(std::erf(x / std::numbers::sqrt2)) / 2 + std::abs(x * normal_density(x)); }};
}

}  // namespace

Score score_function(std::string_view name) {
  if (name == "relu") {
    return {[](double x) { return x <= 0 ? 0.0 : x; }, [](double x) { return x <= 0 ? 0.0 : 1.0; }, zero, zero, zero};
  }
  if (name == "relu2") {
    return {[](double x) { return x <= 0 ? 0.0 : x * x; }, [](double x) { return x <= 0 ? 0.0 : 2 * x; },
            [](double x) { return x > 0 ? 2.0 : 0.0; }, zero, zero};
  }
  if (name == "sigmoid") return sigmoid_score();
  if (name == "tanh") return tanh_score();
  if (name == "gelu") return gelu();
  if (name == "identity") return {[](double x) { return x; }, one, zero, zero, zero};
  return silu();
}

AttentionCall::AttentionCall(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values)
    : params(spec.params()),
      bias_operand(spec.operand(OperandUse::kBias)),
      factor_operand(spec.operand(OperandUse::kFactor)),
      score(score_function(params.score)) {
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
  alpha = round_to(DataType::kFp32, value("alpha").scalar);  // as a kernel is given it: below 2^-126 that shows
  const double scaling = value("scaling_seqlen").scalar;
  scale = scaling > 0 ? scaling : value("max_seq_len").scalar;

  offsets_ = queries_ = value("seq_offsets").tensor.integers;
  if (spec.query_rows() == QueryRows::kLastJagged) queries_ = value("seq_offsets_q").tensor.integers;
  if (spec.query_rows() == QueryRows::kLast) {
    const auto each = static_cast<int64_t>(value("max_delta_len").scalar);
    for (size_t b = 0; b < queries_.size(); ++b) queries_[b] = static_cast<int64_t>(b) * each;
  }
  if (params.num_targets) targets_ = value("num_targets").tensor.integers;
}

void AttentionCall::for_each_head(const std::vector<bool>& chosen,
                                  const std::function<void(const SequenceRows&, int64_t head)>& body) const {
  const int64_t together = returns_dbias ? params.heads / bias_operand->heads : 1;
  const auto groups = static_cast<size_t>(params.heads / together);
  const int threads = threads_for(rows() * params.heads, 64);
  parallel_for(static_cast<size_t>(sequences()) * groups, threads, [&](int, size_t index) {
    const size_t b = index / groups;
    if (!chosen.empty() && !chosen[b]) return;
    const SequenceRows sequence = {static_cast<int64_t>(b),
                                   offsets_[b],
                                   offsets_[b + 1] - offsets_[b],
                                   targets_.empty() ? 0 : targets_[b],
                                   queries_[b],
                                   queries_[b + 1] - queries_[b]};
    for (int64_t i = 0; i < together; ++i) body(sequence, static_cast<int64_t>(index % groups) * together + i);
  });
}

}  // namespace hstujit
