// Values of attention that are carried with the variance of their error: sums and products of them, scores, and what a
// call's elements are summed up to.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "compiler/spec/operators/hstu_attention/attention_call.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/running_sums.h"

namespace hstujit {

// Unit roundoffs.
struct Units {
  double operand = 0;     // of what a matrix product reads from memory
  double stored = 0;      // of P and dS, which a second product reads
  double step = 0;        // between the smallest numbers that those may have
  double sum = 0;         // of a running sum
  double tanh = 0;        // relative error of tanh
  double arithmetic = 0;  // of an expression of a few operations in fp32
};

// The variance of a value's place between two numbers with this distance.
constexpr double grid_variance(double step) { return step * step / 12; }
inline constexpr double kFp32Step = 0x1p-149;  // of fp32, below its normal numbers
inline constexpr double kGrid = grid_variance(kFp32Step);

inline Units units_of(const HstuAttentionParams& params) {
  constexpr double kFp32 = 0x1p-24, kTf32 = 0x1p-11, kFastTanh = 0x1p-11;
  const bool fp32 = params.dtype == DataType::kFp32;
  constexpr double kTf32Step = 0x1p-136;
  Units units{
      .operand = 0, .stored = kFp32, .step = kFp32Step, .sum = kFp32, .tanh = 4 * kFp32, .arithmetic = 4 * kFp32};
  if (fp32 && params.precision == MatmulPrecision::kIeee) return units;
  // Tensor cores cut sums off, which is off by up to two units.
  units.sum = 2 * kFp32;
  units.tanh = kFastTanh;
  units.operand = fp32 ? kTf32 : 0;
  units.stored = fp32 ? kTf32 : unit_roundoff(params.dtype);
  units.step = fp32 ? kTf32Step : smallest_step(params.dtype);
  return units;
}

inline Estimate scaled(const Estimate& a, double factor) { return {a.value * factor, a.variance * square(factor)}; }

// Variances of a row of sums, which are an output.
inline void write(const Sums& sums, int64_t row, int64_t width, double* to, const Units& units) {
  for (int64_t d = 0; d < width; ++d) {
    const Estimate sum = sums.total(row, d, units.sum);
    to[d] = sum.variance + square(units.arithmetic * sum.value);
  }
}

inline Estimate dot(const double* a, const double* b, int64_t width, double first, const Units& units) {
  Sum sum;
  sum.add(first, 0);
  for (int64_t d = 0; d < width; ++d) {
    if (units.operand == 0)  // as of most instances: terms have no error, and half of the operations go
      sum.add(a[d] * b[d], 0);
    else
      sum.add(operand(a[d], units.operand) * operand(b[d], units.operand));
  }
  return sum.total(units.sum);
}

// Value and derivative of the score at s.
struct Scored {
  Estimate value, slope;
};

class Errors {
 public:
  Errors(const AttentionCall& x, const Units& units) : Errors(x, units, x.score) {}
  // With the score of other heads.
  Errors(const AttentionCall& x, const Units& units, const ScoreFormula& formula)
      : x_(x), units_(units), formula_(formula), weighted_(x.params.has_row_factors()) {}

  Estimate score(const double* q, const double* k, double bias) const {
    const Estimate s = scaled(dot(q, k, x_.params.attn_dim, bias, units_), x_.alpha);
    return {s.value, s.variance + square(units_.arithmetic * s.value) + kGrid};
  }
  Estimate dot_hidden(const double* dout, const double* v) const {
    return dot(dout, v, x_.params.hidden_dim, 0, units_);
  }
  // The score at s, computed in fp32 with an approximate tanh. Its slope is the steepest within reach of s's error, so
  // that a bend does not hide one. Near its zeros the derivative is a difference of numbers around 1.
  Scored scored(const Estimate& s, const ScorePlace& place) const {
    constexpr double kReach = 6;  // standard deviations
    const double reach = kReach * std::sqrt(s.variance);
    const FormulaPoint at = formula_.at(s.value, place, FormulaDetail::kErrors);
    double slope = square(at.slope), curvature = square(at.curvature);
    for (const double other : {s.value - reach, s.value + reach}) {
      const FormulaPoint near = formula_.at(other, place, FormulaDetail::kErrors);
      slope = std::max(slope, square(near.slope));
      curvature = std::max(curvature, square(near.curvature));
      if (!formula_.may_jump() || reach == 0) continue;
      slope = std::max(slope, square((near.value - at.value) / reach));
      curvature = std::max(curvature, square((near.slope - at.slope) / reach));
    }
    const auto rounded = [&](double value, double by_tanh, double by_rounding, double least) {
      return square(units_.tanh * by_tanh) / 3 +
             square(units_.arithmetic) * (square(std::max(std::abs(value), by_rounding)) + least) + kGrid;
    };
    return {{at.value, slope * s.variance + rounded(at.value, at.value_by_tanh, at.value_by_rounding, 0)},
            {at.slope, curvature * s.variance + rounded(at.slope, at.slope_by_tanh, at.slope_by_rounding, 1)}};
  }
  // The derivative of the score with respect to what a site reads. It changes with s by as much as at the ends of the
  // reach of s's error.
  Estimate site_slope(const ScoreFormula::Site& site, const Estimate& s, const ScorePlace& place) const {
    constexpr double kReach = 6;  // standard deviations
    const double reach = kReach * std::sqrt(s.variance);
    const FormulaPoint at = formula_.at(site, s.value, place, FormulaDetail::kErrors);
    double change = 0;
    for (const double other : {s.value - reach, s.value + reach})
      change = std::max(change, square(formula_.at(site, other, place, FormulaDetail::kSlope).slope - at.slope));
    const double rounded = square(units_.tanh * at.slope_by_tanh) / 3 +
                           square(units_.arithmetic) * (square(std::max(std::abs(at.slope), at.slope_by_rounding)) + 1);
    return {at.slope, change / square(kReach) + rounded + kGrid};
  }
  // The term that a pair adds to the element that a site reads. It may follow from dS as it is stored.
  Estimate site_term(const Estimate& product, const ScoreFormula::Site& site, double factor) const {
    const bool by_kernel = formula_.operands()[site.operand].has_slopes();
    return by_kernel || !formula_.sites_add_to_x() ? scaled(product, factor) : stored(product, factor);
  }
  // The product of dP, the derivative and alpha, whichever two are multiplied first.
  Estimate slope(const Estimate& dp, const Estimate& derivative) const {
    const Estimate product = scaled(dp * derivative, x_.alpha);
    return {product.value, product.variance + kGrid * (1 + square(dp.value) + square(derivative.value))};
  }
  // A weight of softmax, which is a power of two relative to the largest S, rounded for the second product and then
  // divided by the sum of all.
  Estimate softmax_weight(double weight, double sum) const {
    const double rounding = rounding_variance(weight, units_.stored) + square(units_.arithmetic * weight);
    return {weight, rounding + (grid_variance(units_.step) + kGrid) / square(sum)};
  }
  // P or dS, rounded once for the second product, times the factor of the row of q. Where every row has its own it may
  // be applied before the rounding.
  Estimate stored(const Estimate& weight, double factor) const {
    const auto rounding = [&](double value) {
      return rounding_variance(value, units_.stored) + grid_variance(units_.step);
    };
    const Estimate product = scaled(weight, factor);
    const double behind = rounding(weight.value) * square(factor);
    return {product.value, product.variance + (weighted_ ? std::max(behind, rounding(product.value)) : behind)};
  }

 private:
  const AttentionCall& x_;
  const Units& units_;
  const ScoreFormula& formula_;
  bool weighted_;
};

// Variances of elements that terms of many sequences and heads are added to. Sums are taken in any order, from terms
// of random sign.
class SharedSums {
 public:
  explicit SharedSums(size_t elements)
      : variances_(elements), squares_(elements), values_(elements), terms_(elements) {}

  size_t size() const { return variances_.size(); }
  void add_variance(size_t element, double variance) { plus(variances_[element], variance); }
  void add(size_t element, const Estimate& term) {
    plus(variances_[element], term.variance);
    plus(squares_[element], square(term.value));
    plus(values_[element], term.value);
    plus(terms_[element], 1);
  }
  // Terms that are multiples of `step`.
  void add_steps(size_t element, double terms, double step) { add_variance(element, terms * grid_variance(step)); }
  void write(double* to, const Units& units) const {
    for (size_t i = 0; i < size(); ++i) {
      const double sums = square(units.sum) * (square(values_[i]) + terms_[i] * squares_[i]);
      to[i] = variances_[i] + sums + square(units.arithmetic * values_[i]);
    }
  }

 private:
  static void plus(double& to, double term) { std::atomic_ref<double>(to).fetch_add(term, std::memory_order_relaxed); }

  std::vector<double> variances_, squares_, values_, terms_;
};

// The terms of one sequence and head that are added to an operand's gradient. Kernels add up the terms of a tile as
// multiples of a step, which is this part of the largest.
class OwnTerms {
 public:
  OwnTerms(SharedSums& sums, bool in_steps, double step)
      : sums_(sums), step_(step), counts_(in_steps ? sums.size() : 0) {}

  void add(size_t element, const Estimate& term) {
    sums_.add(element, term);
    if (counts_.empty()) return;
    largest_ = std::max(largest_, std::abs(term.value));
    ++counts_[element];
  }
  // The variance of an error that several terms have in common.
  void add_variance(size_t element, double variance) { sums_.add_variance(element, variance); }
  void finish() {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0) sums_.add_steps(i, counts_[i], step_ * largest_);
    }
  }

 private:
  SharedSums& sums_;
  double step_;
  std::vector<double> counts_;
  double largest_ = 0;
};

// Variances by output; null is what the call has not.
struct Variances {
  double *out, *dq, *dk, *dv, *dbias;
  Estimate* slopes;              // of each row of q and head, what it adds to the gradient of the factors
  std::vector<SharedSums>* own;  // of declared operands
};

// The terms of declared operands, for a sequence and head.
inline std::vector<OwnTerms> own_terms(const AttentionCall& x, const Variances& y) {
  const double step = x.score.sites_add_to_x() ? 0x1p-13 : 0x1p-17;  // site_warps.cuh, table_scatter.cuh
  std::vector<OwnTerms> terms;
  for (size_t o = 0; o < y.own->size(); ++o) terms.emplace_back((*y.own)[o], x.score.operands()[o].has_sites(), step);
  return terms;
}

// Variances of outputs of heads whose weights are a softmax.
void softmax_forward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                               const SequenceRows& rows);
void softmax_backward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                                const SequenceRows& rows);

}  // namespace hstujit
