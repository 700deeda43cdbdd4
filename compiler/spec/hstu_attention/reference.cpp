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

// The tensors of one call, addressed by row and head. Forward has out, backward dout and the gradients; null is what
// the call has not.
struct Operands {
  const double *q, *k, *v, *dout, *rab, *attn_scale;
  double *out, *dq, *dk, *dv, *drab;
  double* slopes;  // what each row of q and head adds to dattn_scale
  int64_t heads, attn_dim, hidden_dim, bias_heads, max_seq_len;
  double alpha, scale;
  bool scale_rows;  // attn_scale has a factor for each row of q
  Score score;

  // Where rab and drab have the pair (i, j) of sequence b.
  int64_t bias_at(int64_t b, int64_t head, int64_t i, int64_t j) const {
    return ((b * bias_heads + head / (heads / bias_heads)) * max_seq_len + i) * max_seq_len + j;
  }
  // What the scores of this row of q are multiplied by.
  double factor(int64_t query) const { return attn_scale == nullptr ? 1 / scale : attn_scale[scale_rows ? query : 0]; }
};

// Sequence b: its rows in k and v, the last t of which are targets, and its last rows in q and out. Rows of q that lie
// before the sequence see nothing.
struct SequenceRows {
  int64_t b, first, n, t;
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

// S of row i of the sequence and column j.
double product(const Operands& x, int64_t head, const SequenceRows& rows, const double* q, int64_t i, int64_t j) {
  const double bias = x.rab == nullptr ? 0 : x.rab[x.bias_at(rows.b, head, i, j)];
  return x.alpha * (dot(q, x.k + ((rows.first + j) * x.heads + head) * x.attn_dim, x.attn_dim) + bias);
}

void attend(const HstuAttentionParams& params, const Operands& x, int64_t head, const SequenceRows& rows) {
  const auto place = [&](int64_t row, int64_t width) { return (row * x.heads + head) * width; };
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r;
    double* out = x.out + place(rows.first_query + r, x.hidden_dim);
    const double* q = x.q + place(rows.first_query + r, x.attn_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (i < 0 || !hstu_attention_valid(params, i, j, rows.n, rows.t)) continue;
      const double weight = x.score.value(product(x, head, rows, q, i, j)) * x.factor(rows.first_query + r);
      add(out, weight, x.v + place(rows.first + j, x.hidden_dim), x.hidden_dim);
    }
  }
}

// What row i of out passes on to q, k and v: with P = score(S) * a and dP = dout v, dS = dP score'(S) * a, where a is
// 1 / scale or a factor of attn_scale; and to the tensors beside them, drab by alpha dS and dattn_scale by score(S) dP.
void attend_backward(const HstuAttentionParams& params, const Operands& x, int64_t head, const SequenceRows& rows) {
  const auto place = [&](int64_t row, int64_t width) { return ((rows.first + row) * x.heads + head) * width; };
  for (int64_t i = 0; i < rows.n; ++i) {
    const int64_t row = place(i, x.attn_dim);
    const double* dout = x.dout + place(i, x.hidden_dim);
    const double factor = x.factor(rows.first + i);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (!hstu_attention_valid(params, i, j, rows.n, rows.t)) continue;
      const int64_t column = place(j, x.attn_dim), value = place(j, x.hidden_dim);
      const double s = product(x, head, rows, x.q + row, i, j);
      const double dp = dot(dout, x.v + value, x.hidden_dim);
      const double ds = dp * x.score.derivative(s) * factor;
      add(x.dq + row, x.alpha * ds, x.k + column, x.attn_dim);
      add(x.dk + column, x.alpha * ds, x.q + row, x.attn_dim);
      add(x.dv + value, x.score.value(s) * factor, dout, x.hidden_dim);
      if (x.drab != nullptr) x.drab[x.bias_at(rows.b, head, i, j)] += x.alpha * ds;
      if (x.slopes != nullptr) x.slopes[place(i, 1)] += x.score.value(s) * dp;
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
  const auto zeros = [&](std::string_view name, std::vector<int64_t> shape) -> double* {
    if (find_argument(arguments, name) < 0) return nullptr;
    HostTensor& tensor = value(name).tensor;
    tensor.shape = std::move(shape);
    size_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<size_t>(size);
    tensor.reals.assign(elements, 0.0);
    return tensor.reals.data();
  };
  // In the shape of q, k or v, but for the width.
  const auto output = [&](std::string_view name, std::string_view like, int64_t width) {
    return zeros(name, {value(like).tensor.shape[0], params_.heads, width});
  };
  const auto output_like = [&](std::string_view name, std::string_view like) {
    return find_argument(arguments, name) < 0 ? nullptr : zeros(name, value(like).tensor.shape);
  };
  double* const dattn_scale = output_like("dattn_scale", "attn_scale");
  std::vector<double> slopes(dattn_scale == nullptr ? 0 : value("q").tensor.reals.size() / params_.attn_dim);

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
                             input("rab"),
                             input("attn_scale"),
                             output("out", "q", params_.hidden_dim),
                             output("dq", "q", params_.attn_dim),
                             output("dk", "k", params_.attn_dim),
                             output("dv", "v", params_.hidden_dim),
                             output_like("drab", "rab"),
                             dattn_scale == nullptr ? nullptr : slopes.data(),
                             params_.heads,
                             params_.attn_dim,
                             params_.hidden_dim,
                             params_.rab_heads,
                             static_cast<int64_t>(value("max_seq_len").scalar),
                             value("alpha").scalar,
                             scaling > 0 ? scaling : value("max_seq_len").scalar,
                             params_.attn_scale == "rows",
                             score_function(params_.score)};
  // Heads that share a head of drab are one after the other.
  const int64_t together = operands.drab == nullptr ? 1 : params_.heads / params_.rab_heads;
  const auto groups = static_cast<size_t>(params_.heads / together);
  const int threads = threads_for(offsets.back() * params_.heads, 64);
  parallel_for((offsets.size() - 1) * groups, threads, [&](int, size_t index) {
    const size_t b = index / groups;
    const int64_t targets = params_.num_targets ? value("num_targets").tensor.integers[b] : 0;
    const auto compute = direction == Direction::kForward ? attend : attend_backward;
    for (int64_t i = 0; i < together; ++i) {
      compute(params_, operands, static_cast<int64_t>(index % groups) * together + i,
              {static_cast<int64_t>(b), offsets[b], offsets[b + 1] - offsets[b], targets, queries[b],
               queries[b + 1] - queries[b]});
    }
  });
  double squares = 0;
  for (size_t index = 0; index < slopes.size(); index += static_cast<size_t>(params_.heads)) {
    double row = 0;
    for (int64_t head = 0; head < params_.heads; ++head) row += slopes[index + static_cast<size_t>(head)];
    dattn_scale[operands.scale_rows ? index / static_cast<size_t>(params_.heads) : 0] += row;
    squares += row * row;
  }
  if (dattn_scale != nullptr && !operands.scale_rows) value("dattn_scale").tensor.parts_norm = std::sqrt(squares);
}

}  // namespace hstujit
