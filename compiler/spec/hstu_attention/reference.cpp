// The attention operators in float64, as docs/ops.md writes it: one sequence and head at a time, one row at a time.
#include <cmath>

#include "compiler/spec/hstu_attention/attention_spec.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

using Score = double (*)(double);

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Score score_function(const std::string& name) {
  if (name == "relu") return [](double x) { return x > 0 ? x : 0.0; };
  if (name == "relu2") return [](double x) { return x > 0 ? x * x : 0.0; };
  if (name == "sigmoid") return sigmoid;
  if (name == "tanh") return [](double x) { return std::tanh(x); };
  if (name == "gelu") return [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); };
  if (name == "identity") return [](double x) { return x; };
  return [](double x) { return x * sigmoid(x); };  // silu
}

// The tensors of one call, addressed by row and head.
struct Operands {
  const double *q, *k, *v;
  double* out;
  int64_t heads, attn_dim, hidden_dim;
  double alpha, scale;
  Score score;
};

// One sequence: its rows in k and v, the last t of which are targets, and its last rows in q and out. Rows of q that
// lie before the sequence see nothing.
struct SequenceRows {
  int64_t first, n, t;
  int64_t first_query, queries;
};

void attend(const HstuAttentionParams& params, const Operands& x, int64_t head, const SequenceRows& rows) {
  const auto place = [&](int64_t row, int64_t width) { return (row * x.heads + head) * width; };
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r;
    double* out = x.out + place(rows.first_query + r, x.hidden_dim);
    const double* q = x.q + place(rows.first_query + r, x.attn_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (i < 0 || !hstu_attention_valid(params, i, j, rows.n, rows.t)) continue;
      const double* k = x.k + place(rows.first + j, x.attn_dim);
      double dot = 0;
      for (int64_t d = 0; d < x.attn_dim; ++d) dot += q[d] * k[d];
      const double weight = x.score(x.alpha * dot) / x.scale;
      const double* v = x.v + place(rows.first + j, x.hidden_dim);
      for (int64_t d = 0; d < x.hidden_dim; ++d) out[d] += weight * v[d];
    }
  }
}

}  // namespace

void AttentionSpec::reference(Direction direction, const Lengths&, std::vector<HostValue>& values) const {
  const Signature arguments = signature(direction);
  const auto value = [&](std::string_view name) -> HostValue& {
    return values[static_cast<size_t>(find_argument(arguments, name))];
  };
  const std::vector<int64_t>& offsets = value("seq_offsets").tensor.integers;
  const double scaling = value("scaling_seqlen").scalar;

  HostTensor& out = value("out").tensor;
  out.shape = {value("q").tensor.shape[0], params_.heads, params_.hidden_dim};
  out.reals.assign(static_cast<size_t>(out.shape[0] * params_.heads * params_.hidden_dim), 0.0);

  // Where the sequences' rows of q begin.
  std::vector<int64_t> queries = offsets;
  if (query_rows_ == QueryRows::kLastJagged) queries = value("seq_offsets_q").tensor.integers;
  if (query_rows_ == QueryRows::kLast) {
    const auto each = static_cast<int64_t>(value("max_delta_len").scalar);
    for (size_t b = 0; b < queries.size(); ++b) queries[b] = static_cast<int64_t>(b) * each;
  }

  const Operands operands = {value("q").tensor.reals.data(),
                             value("k").tensor.reals.data(),
                             value("v").tensor.reals.data(),
                             out.reals.data(),
                             params_.heads,
                             params_.attn_dim,
                             params_.hidden_dim,
                             value("alpha").scalar,
                             scaling > 0 ? scaling : value("max_seq_len").scalar,
                             score_function(params_.score)};
  const auto heads = static_cast<size_t>(params_.heads);
  parallel_for((offsets.size() - 1) * heads, available_threads(), [&](int, size_t index) {
    const size_t b = index / heads;
    const int64_t targets = params_.num_targets ? value("num_targets").tensor.integers[b] : 0;
    attend(params_, operands, static_cast<int64_t>(index % heads),
           {offsets[b], offsets[b + 1] - offsets[b], targets, queries[b], queries[b + 1] - queries[b]});
  });
}

}  // namespace hstujit
