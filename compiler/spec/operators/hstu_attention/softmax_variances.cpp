// Effects of rounding on the outputs of heads whose weights are a softmax (docs/numerics.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "compiler/spec/operators/hstu_attention/error_estimates.h"

namespace hstujit {

namespace {

// Row i of the sequence in a head with softmax: the valid columns, and of each S, its score and the slope of that, the
// weight, which is relative to the sum of all, what dropout multiplies it by, and dP where `dout` is given.
struct SoftmaxRow {
  SoftmaxRow(const AttentionCall& x, const Errors& errors, const Units& units, int64_t head, const SequenceRows& rows,
             int64_t query, int64_t i, const double* dout = nullptr) {
    for (int64_t j = 0; i >= 0 && j < rows.n; ++j) {
      if (!x.valid(rows, head, i, j)) continue;
      const Estimate s =
          errors.score(x.q + x.place(query, head, x.params.attn_dim),
                       x.k + x.place(rows.first + j, head, x.params.attn_dim), x.bias(rows.b, head, i, j));
      auto [score, slope] =
          x.params.has_softmax_score() ? errors.scored(s, x.pair(rows, head, i, j)) : Scored{s, {1, 0}};
      score.variance += square(units.arithmetic * score.value);  // once more, as a power of two
      largest = std::max(largest, score.value);
      columns.push_back(j);
      products.push_back(s);
      scores.push_back(score);
      slopes.push_back(slope);
      kept.push_back(x.kept(rows, head, i, j));
      if (dout == nullptr) continue;
      const double* const v = x.v + x.place(rows.first + j, head, x.params.hidden_dim);
      dp.push_back(scaled(errors.dot_hidden(dout, v), kept.back()));
    }
    Sum all;
    for (const Estimate& s : scores) all.add(std::exp(s.value - largest), 0);
    sum = all.total(units.sum);
    for (const Estimate& s : scores) weights.push_back(std::exp(s.value - largest) / sum.value);
  }

  std::vector<int64_t> columns;
  double largest = -std::numeric_limits<double>::infinity();  // of the scores
  std::vector<Estimate> products, scores, slopes, dp;
  std::vector<double> weights, kept;
  Estimate sum;  // of the weights before they are divided by it, of which the largest is 1
};

}  // namespace

// Sums of the slopes of a row's pairs: what elements of operands get of an error of the mean of dP, and of one of the
// logarithm of the sum of weights, which the pairs have in common.
struct SharedErrors {
  double by_mean = 0, by_logarithm = 0;
};

// An error of the score of a column moves its weight, and all others through their sum: the result by the weight times
// the column's distance from the result.
void softmax_forward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                               const SequenceRows& rows) {
  const Errors errors(x, units, x.softmax_score);
  const int64_t hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t query = rows.first_query + r;
    const SoftmaxRow row(x, errors, units, head, rows, query, rows.n - rows.queries + r);
    const auto v = [&](size_t c) { return x.v + x.place(rows.first + row.columns[c], head, hidden_dim); };
    Sums out(1, hidden_dim);
    std::vector<double> mean(static_cast<size_t>(hidden_dim));
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const double kept = row.kept[c];
      out.add(0, scaled(errors.softmax_weight(row.weights[c], row.sum.value), kept), v(c), units.operand);
      for (int64_t d = 0; d < hidden_dim; ++d) mean[static_cast<size_t>(d)] += row.weights[c] * kept * v(c)[d];
    }
    double* const to = y.out + x.place(query, head, hidden_dim);
    write(out, 0, hidden_dim, to, units);
    for (int64_t d = 0; d < hidden_dim; ++d) {
      const double value = mean[static_cast<size_t>(d)];
      for (size_t c = 0; c < row.columns.size(); ++c)
        to[d] += square(row.weights[c] * (row.kept[c] * v(c)[d] - value)) * row.scores[c].variance;
      if (!row.columns.empty()) to[d] += square(value / row.sum.value) * row.sum.variance;
    }
  }
}

// Backward has the logarithm of the sum and the mean of dP of each row in fp32; their errors are those of all of its
// weights, and of all dS, together.
void softmax_backward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                                const SequenceRows& rows) {
  const Errors errors(x, units, x.softmax_score);
  const int64_t attn_dim = x.params.attn_dim, hidden_dim = x.params.hidden_dim;
  Sums dk(rows.n, attn_dim), dv(rows.n, hidden_dim);
  std::vector<OwnTerms> operands = own_terms(x, y);
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r, query = rows.first_query + r;
    const double* const q = x.q + x.place(query, head, attn_dim);
    const double* const dout = x.dout + x.place(query, head, hidden_dim);
    const SoftmaxRow row(x, errors, units, head, rows, query, i, dout);
    if (row.columns.empty()) continue;
    Sum means;
    double logarithm = square(units.arithmetic * (1 + std::abs(row.largest) + std::log(row.sum.value))) +
                       row.sum.variance / square(row.sum.value);
    for (size_t c = 0; c < row.columns.size(); ++c)
      means.add(row.weights[c] * row.dp[c].value, square(row.weights[c]) * row.dp[c].variance);
    Estimate mean = means.total(units.sum);
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const double moved = square(row.weights[c]) * row.scores[c].variance;
      logarithm += moved;
      mean.variance += moved * square(row.dp[c].value - mean.value);
    }
    mean.variance += square(units.arithmetic * mean.value);
    Sums dq(1, attn_dim);
    std::map<std::pair<size_t, int64_t>, SharedErrors> shared;
    std::vector<double> by_mean(static_cast<size_t>(attn_dim)), value(static_cast<size_t>(attn_dim));
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const int64_t j = row.columns[c];
      const double* const k = x.k + x.place(rows.first + j, head, attn_dim);
      const Estimate weight = {row.weights[c],
                               square(row.weights[c]) * (row.scores[c].variance + square(units.arithmetic)) + kGrid};
      const Estimate own = {row.dp[c].value - mean.value,
                            row.dp[c].variance + square(units.arithmetic * row.dp[c].value)};
      const Estimate ds = errors.slope(own * row.slopes[c], weight);
      dq.add(0, errors.stored(ds, 1), k, units.operand);
      // Rows are independent of one another in sums of columns.
      const Estimate of_row = {own.value, own.variance + mean.variance};
      const Estimate by_row = {weight.value, weight.variance + square(weight.value) * logarithm};
      dk.add(j, errors.stored(errors.slope(of_row * row.slopes[c], by_row), 1), q, units.operand);
      dv.add(j, errors.stored(by_row, row.kept[c]), dout, units.operand);
      for (int64_t d = 0; d < attn_dim; ++d) {
        by_mean[static_cast<size_t>(d)] += x.alpha * row.weights[c] * row.slopes[c].value * k[d];
        value[static_cast<size_t>(d)] += ds.value * k[d];
      }
      if (y.dbias != nullptr) {
        const Estimate term = errors.slope(of_row * row.slopes[c], by_row);
        y.dbias[x.bias_at(rows.b, head, i, j)] += term.variance + square(units.arithmetic * term.value);
      }
      const ScorePlace pair = x.pair(rows, head, i, j);
      for (const ScoreFormula::Site& site : x.softmax_score.sites()) {
        const int64_t element = x.softmax_score.element(site, pair);
        if (element < 0) continue;
        const Estimate slope = errors.site_slope(site, row.products[c], pair), term = own * weight * slope;
        operands[site.operand].add(static_cast<size_t>(element),
                                   {term.value, term.variance + square(units.arithmetic * term.value) + kGrid});
        SharedErrors& errors_of_row = shared[{site.operand, element}];
        errors_of_row.by_mean += weight.value * slope.value;
        errors_of_row.by_logarithm += term.value;
      }
    }
    for (const auto& [place, error] : shared) {
      operands[place.first].add_variance(static_cast<size_t>(place.second), square(error.by_mean) * mean.variance +
                                                                                square(error.by_logarithm) * logarithm);
    }
    double* const to = y.dq + x.place(query, head, attn_dim);
    write(dq, 0, attn_dim, to, units);
    for (int64_t d = 0; d < attn_dim; ++d) {
      to[d] +=
          square(by_mean[static_cast<size_t>(d)]) * mean.variance + square(value[static_cast<size_t>(d)]) * logarithm;
    }
  }
  for (OwnTerms& terms : operands) terms.finish();
  for (int64_t j = 0; j < rows.n; ++j) {
    write(dk, j, attn_dim, y.dk + x.place(rows.first + j, head, attn_dim), units);
    write(dv, j, hidden_dim, y.dv + x.place(rows.first + j, head, hidden_dim), units);
  }
}

}  // namespace hstujit
