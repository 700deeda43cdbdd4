// The attention operators in float64, as docs/ops.md writes it: one sequence and head at a time, one row at a time.
#include <cmath>
#include <numbers>

#include "compiler/spec/hstu_attention/attention_spec.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A score function and its derivative.
struct Score {
  double (*value)(double);
  double (*derivative)(double);
};

double gelu_derivative(double x) {
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return below + x * std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

Score score_function(const std::string& name) {
  if (name == "relu") return {[](double x) { return x > 0 ? x : 0.0; }, [](double x) { return x > 0 ? 1.0 : 0.0; }};
  if (name == "relu2")
    return {[](double x) { return x > 0 ? x * x : 0.0; }, [](double x) { return x > 0 ? 2 * x : 0.0; }};
  if (name == "sigmoid") return {sigmoid, [](double x) { return sigmoid(x) * sigmoid(-x); }};
  if (name == "tanh")
    return {[](double x) { return std::tanh(x); }, [](double x) { return 1 - std::tanh(x) * std::tanh(x); }};
  if (name == "gelu") return {[](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }, gelu_derivative};
  if (name == "identity") return {[](double x) { return x; }, [](double) { return 1.0; }};
  // silu
  return {[](double x) { return x * sigmoid(x); }, [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }};
}

// The tensors of one call, addressed by row and head. Forward has out, backward dout and the gradients.
struct Operands {
  const double *q, *k, *v, *dout;
  double *out, *dq, *dk, *dv;
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

double dot(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += a[d] * b[d];
  return sum;
}

void add(double* to, double factor, const double* from, int64_t width) {
  for (int64_t d = 0; d < width; ++d) to[d] += factor * from[d];
}

void attend(const HstuAttentionParams& params, const Operands& x, int64_t head, const SequenceRows& rows) {
  const auto place = [&](int64_t row, int64_t width) { return (row * x.heads + head) * width; };
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r;
    double* out = x.out + place(rows.first_query + r, x.hidden_dim);
    const double* q = x.q + place(rows.first_query + r, x.attn_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (i < 0 || !hstu_attention_valid(params, i, j, rows.n, rows.t)) continue;
      const double* k = x.k + place(rows.first + j, x.attn_dim);
      const double weight = x.score.value(x.alpha * dot(q, k, x.attn_dim)) / x.scale;
      add(out, weight, x.v + place(rows.first + j, x.hidden_dim), x.hidden_dim);
    }
  }
}

// What row i of out passes on to q, k and v: with P = score(S) / scale and dP = dout v, dS = dP score'(S) / scale.
void attend_backward(const HstuAttentionParams& params, const Operands& x, int64_t head, const SequenceRows& rows) {
  const auto place = [&](int64_t row, int64_t width) { return ((rows.first + row) * x.heads + head) * width; };
  for (int64_t i = 0; i < rows.n; ++i) {
    const int64_t row = place(i, x.attn_dim);
    const double* dout = x.dout + place(i, x.hidden_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (!hstu_attention_valid(params, i, j, rows.n, rows.t)) continue;
      const int64_t column = place(j, x.attn_dim), value = place(j, x.hidden_dim);
      const double s = x.alpha * dot(x.q + row, x.k + column, x.attn_dim);
      const double ds = dot(dout, x.v + value, x.hidden_dim) * x.score.derivative(s) / x.scale;
      add(x.dq + row, x.alpha * ds, x.k + column, x.attn_dim);
      add(x.dk + column, x.alpha * ds, x.q + row, x.attn_dim);
      add(x.dv + value, x.score.value(s) / x.scale, dout, x.hidden_dim);
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

  const auto input = [&](std::string_view name) -> const double* {
    return find_argument(arguments, name) < 0 ? nullptr : value(name).tensor.reals.data();
  };
  // Zeros in the shape of q, k or v, but for the width.
  const auto output = [&](std::string_view name, std::string_view like, int64_t width) -> double* {
    if (find_argument(arguments, name) < 0) return nullptr;
    HostTensor& tensor = value(name).tensor;
    tensor.shape = {value(like).tensor.shape[0], params_.heads, width};
    tensor.reals.assign(static_cast<size_t>(tensor.shape[0] * params_.heads * width), 0.0);
    return tensor.reals.data();
  };

  // Where the sequences' rows of q begin.
  std::vector<int64_t> queries = offsets;
  if (query_rows_ == QueryRows::kLastJagged) queries = value("seq_offsets_q").tensor.integers;
  if (query_rows_ == QueryRows::kLast) {
    const auto each = static_cast<int64_t>(value("max_delta_len").scalar);
    for (size_t b = 0; b < queries.size(); ++b) queries[b] = static_cast<int64_t>(b) * each;
  }

  const Operands operands = {input("q"),
                             input("k"),
                             input("v"),
                             input("dout"),
                             output("out", "q", params_.hidden_dim),
                             output("dq", "q", params_.attn_dim),
                             output("dk", "k", params_.attn_dim),
                             output("dv", "v", params_.hidden_dim),
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
    const auto compute = direction == Direction::kForward ? attend : attend_backward;
    compute(params_, operands, static_cast<int64_t>(index % heads),
            {offsets[b], offsets[b + 1] - offsets[b], targets, queries[b], queries[b + 1] - queries[b]});
  });
}

}  // namespace hstujit
