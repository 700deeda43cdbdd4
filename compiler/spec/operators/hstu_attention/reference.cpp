// The attention operators in float64, as docs/ops-attention.md writes it: one sequence and head at a time, one row at a
// time.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "compiler/spec/operators/hstu_attention/attention_call.h"
#include "compiler/spec/operators/hstu_attention/attention_reference.h"
#include "compiler/spec/row_products.h"

namespace hstujit {

namespace {

// Forward has out, backward the gradients; null is what the call has not.
struct Outputs {
  double *out, *dq, *dk, *dv, *dbias;
  double* slopes;            // what each row of q and head adds to the gradient of the factors
  std::vector<double*> own;  // gradients of declared operands, null where there is none
};

// Sequences and heads share the elements of tables.
void add_shared(double& to, double term) { std::atomic_ref<double>(to).fetch_add(term, std::memory_order_relaxed); }

// S of row i of the sequence, which is `q`, and column j.
double product(const AttentionCall& x, int64_t head, const SequenceRows& rows, const double* q, int64_t i, int64_t j) {
  const double* k = x.k + x.place(rows.first + j, head, x.params.attn_dim);
  return x.alpha * (dot(q, k, x.params.attn_dim) + x.bias(rows.b, head, i, j));
}

// Row i of the sequence in a head with softmax: the valid columns, S of each and their weights, which add up to 1.
struct SoftmaxRow {
  SoftmaxRow(const AttentionCall& x, int64_t head, const SequenceRows& rows, const double* q, int64_t i) {
    for (int64_t j = 0; i >= 0 && j < rows.n; ++j) {
      if (!x.valid(rows, head, i, j)) continue;
      columns.push_back(j);
      products.push_back(product(x, head, rows, q, i, j));
      weights.push_back(x.softmax_score.value(products.back(), x.pair(rows, head, i, j)));
    }
    if (columns.empty()) return;
    const double largest = *std::ranges::max_element(weights);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (double& weight : weights) weight /= sum;
  }

  std::vector<int64_t> columns;
  std::vector<double> products, weights;
};

// Adds what a pair with S `s` passes on to the operands that its score reads.
void add_to_operands(const Outputs& y, const ScoreFormula& score, double s, const ScorePlace& pair, double passed_on) {
  for (const ScoreFormula::Site& site : score.sites()) {
    const int64_t element = score.element(site, pair);
    if (element < 0) continue;
    add_shared(y.own[site.operand][element], passed_on * score.at(site, s, pair, FormulaDetail::kSlope).slope);
  }
}

void attend_by_softmax(const AttentionCall& x, const Outputs& y, int64_t head, const SequenceRows& rows) {
  const int64_t hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const double* q = x.q + x.place(rows.first_query + r, head, x.params.attn_dim);
    const int64_t i = rows.n - rows.queries + r;
    const SoftmaxRow row(x, head, rows, q, i);
    double* out = y.out + x.place(rows.first_query + r, head, hidden_dim);
    for (size_t c = 0; c < row.columns.size(); ++c)
      add_multiple(out, row.weights[c] * x.kept(rows, head, i, row.columns[c]),
                   x.v + x.place(rows.first + row.columns[c], head, hidden_dim), hidden_dim);
  }
}

// Passes on P (dP - sum over the row of P dP) times the slope of the score, with P of a row that adds up to 1 and dP =
// dout v, times what dropout multiplies P by.
void attend_by_softmax_backward(const AttentionCall& x, const Outputs& y, int64_t head, const SequenceRows& rows) {
  const int64_t attn_dim = x.params.attn_dim, hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r;
    const int64_t query = x.place(rows.first_query + r, head, attn_dim);
    const double* dout = x.dout + x.place(rows.first_query + r, head, hidden_dim);
    const SoftmaxRow row(x, head, rows, x.q + query, i);
    std::vector<double> dp, kept;
    double mean = 0;
    for (size_t c = 0; c < row.columns.size(); ++c) {
      kept.push_back(x.kept(rows, head, i, row.columns[c]));
      dp.push_back(kept[c] * dot(dout, x.v + x.place(rows.first + row.columns[c], head, hidden_dim), hidden_dim));
      mean += row.weights[c] * dp[c];
    }
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const int64_t j = row.columns[c], column = x.place(rows.first + j, head, attn_dim);
      const double passed_on = row.weights[c] * (dp[c] - mean);
      const ScorePlace pair = x.pair(rows, head, i, j);
      const double ds = passed_on * x.softmax_score.at(row.products[c], pair, FormulaDetail::kSlope).slope;
      add_multiple(y.dq + query, x.alpha * ds, x.k + column, attn_dim);
      add_multiple(y.dk + column, x.alpha * ds, x.q + query, attn_dim);
      add_multiple(y.dv + x.place(rows.first + j, head, hidden_dim), row.weights[c] * kept[c], dout, hidden_dim);
      if (y.dbias != nullptr) y.dbias[x.bias_at(rows.b, head, i, j)] += x.alpha * ds;
      add_to_operands(y, x.softmax_score, row.products[c], pair, passed_on);
    }
  }
}

void attend(const AttentionCall& x, const Outputs& y, int64_t head, const SequenceRows& rows) {
  if (x.params.is_softmax_head(head)) return attend_by_softmax(x, y, head, rows);
  const int64_t hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r;
    double* out = y.out + x.place(rows.first_query + r, head, hidden_dim);
    const double* q = x.q + x.place(rows.first_query + r, head, x.params.attn_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      const double kept = x.kept(rows, head, i, j);
      if (kept == 0 || !x.valid(rows, head, i, j)) continue;
      const double s = product(x, head, rows, q, i, j);
      const double weight = x.score.value(s, x.pair(rows, head, i, j)) * x.factor(rows.first_query + r) * kept;
      add_multiple(out, weight, x.v + x.place(rows.first + j, head, hidden_dim), hidden_dim);
    }
  }
}

// What row i of out passes on to q, k and v: with P = score(S) * a and dP = dout v, dS = dP score'(S) * a, where a is
// 1 / scale or the row's factor; and to the operands, to the bias alpha dS, to the factor score(S) dP and to what the
// score reads dP times its derivative with respect to that, times a.
void attend_backward(const AttentionCall& x, const Outputs& y, int64_t head, const SequenceRows& rows) {
  if (x.params.is_softmax_head(head)) return attend_by_softmax_backward(x, y, head, rows);
  const int64_t attn_dim = x.params.attn_dim, hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r, query = rows.first_query + r;
    const int64_t row = x.place(query, head, attn_dim);
    const double* dout = x.dout + x.place(query, head, hidden_dim);
    const double factor = x.factor(query);
    for (int64_t j = 0; j < rows.n; ++j) {
      const double kept = x.kept(rows, head, i, j);
      if (kept == 0 || !x.valid(rows, head, i, j)) continue;
      const int64_t column = x.place(rows.first + j, head, attn_dim), value = x.place(rows.first + j, head, hidden_dim);
      const double s = product(x, head, rows, x.q + row, i, j);
      const double dp = kept * dot(dout, x.v + value, hidden_dim);
      const ScorePlace pair = x.pair(rows, head, i, j);
      const FormulaPoint score = x.score.at(s, pair, FormulaDetail::kSlope);
      const double ds = dp * score.slope * factor;
      add_multiple(y.dq + row, x.alpha * ds, x.k + column, attn_dim);
      add_multiple(y.dk + column, x.alpha * ds, x.q + row, attn_dim);
      add_multiple(y.dv + value, score.value * factor * kept, dout, hidden_dim);
      if (y.dbias != nullptr) y.dbias[x.bias_at(rows.b, head, i, j)] += x.alpha * ds;
      if (y.slopes != nullptr) y.slopes[x.place(query, head, 1)] += score.value * dp;
      add_to_operands(y, x.score, s, pair, dp * factor);
    }
  }
}

void compute_attention(const AttentionSpec& spec, Direction direction, std::vector<HostValue>& values) {
  const HstuAttentionParams& params = spec.params();
  const Signature arguments = spec.signature(direction);
  const auto value = [&](std::string_view name) -> HostValue& {
    return values[static_cast<size_t>(find_argument(arguments, name))];
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
    return zeros(name, {value(like).tensor.shape[0], params.heads, width});
  };
  // In the shape of the operand; it begins with what the launch gives, where that is added to.
  const auto gradient_of = [&](const Operand* operand) -> double* {
    if (operand == nullptr || find_argument(arguments, operand->gradient_name()) < 0) return nullptr;
    double* const begin = zeros(operand->gradient_name(), value(operand->name).tensor.shape);
    if (!params.adds_gradients) return begin;
    HostTensor& tensor = value(operand->gradient_name()).tensor;
    tensor.reals = value(operand->before_name()).tensor.reals;
    return tensor.reals.data();
  };
  double* const dfactors = gradient_of(spec.operand(OperandUse::kFactor));
  std::vector<double> slopes(dfactors == nullptr ? 0 : value("q").tensor.reals.size() / params.attn_dim);
  std::vector<double*> own;
  for (const Operand& operand : spec.operands()) {
    if (operand.is_own()) own.push_back(gradient_of(&operand));
  }
  const Outputs outputs = {output("out", "q", params.hidden_dim),
                           output("dq", "q", params.attn_dim),
                           output("dk", "k", params.attn_dim),
                           output("dv", "v", params.hidden_dim),
                           gradient_of(spec.operand(OperandUse::kBias)),
                           dfactors == nullptr ? nullptr : slopes.data(),
                           std::move(own)};

  const AttentionCall call(spec, direction, values);
  const auto compute = direction == Direction::kForward ? attend : attend_backward;
  call.for_each_head({}, [&](const SequenceRows& rows, int64_t head) { compute(call, outputs, head, rows); });
  const auto heads = static_cast<size_t>(params.heads);
  for (size_t index = 0; index < slopes.size(); ++index)
    dfactors[call.factor_at(static_cast<int64_t>(index / heads))] += slopes[index];
}

class AttentionReference final : public OperatorReference {
  std::vector<HostValue> make_inputs(const OpSpec& spec, Direction direction, const Lengths& lengths,
                                     uint64_t seed) const override {
    return attention_inputs(static_cast<const AttentionSpec&>(spec), direction, lengths, seed);
  }
  void compute(const OpSpec& spec, Direction direction, const Lengths&, std::vector<HostValue>& values) const override {
    compute_attention(static_cast<const AttentionSpec&>(spec), direction, values);
  }
  std::vector<std::vector<double>> error_variances(const OpSpec& spec, Direction direction,
                                                   const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const override {
    return attention_variances(static_cast<const AttentionSpec&>(spec), direction, inputs, sequences);
  }
};

}  // namespace

const OperatorReference& attention_reference() {
  static const AttentionReference reference;
  return reference;
}

const OperatorReference& reference_hstu_attention() { return attention_reference(); }

}  // namespace hstujit
