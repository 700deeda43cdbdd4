// Values that are carried with the variance of their error, and sums of them as an implementation adds them up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/spec/rounding.h"

namespace hstujit {

struct Estimate {
  double value = 0;
  double variance = 0;
};

inline Estimate operator*(const Estimate& a, const Estimate& b) {
  return {a.value * b.value, square(a.value) * b.variance + (square(b.value) + b.variance) * a.variance};
}

// A number as a matrix product reads it, which rounds it to this unit roundoff.
inline Estimate operand(double value, double unit) { return {value, rounding_variance(value, unit)}; }

// Terms with independent errors, added up in fp32. A running sum is taken to be as large as the largest one in the
// order of the terms, or in another order as a sum of so many terms of random sign.
class Sum {
 public:
  void add(double term, double variance) {
    value_ += term;
    variance_ += variance;
    squares_ += square(term);
    largest_ = std::max(largest_, square(value_));
    ++terms_;
  }
  void add(const Estimate& term) { add(term.value, term.variance); }
  Estimate total(double unit) const {
    return {value_, variance_ + static_cast<double>(terms_) * square(unit) * (largest_ + squares_)};
  }

 private:
  double value_ = 0, variance_ = 0, squares_ = 0, largest_ = 0;
  int64_t terms_ = 0;
};

// The sums of a matrix whose rows are added to. Each part of a row's sums has an array of its own, so that the compiler
// adds to several columns at a time.
class Sums {
 public:
  Sums(int64_t rows, int64_t width)
      : width_(width), terms_(static_cast<size_t>(rows)), parts_(static_cast<size_t>(rows * kParts * width)) {}

  // Adds weight * from, a row that a product reads with this unit roundoff.
  void add(int64_t row, const Estimate& weight, const double* __restrict from, double unit) {
    double* const __restrict values = parts_.data() + row * kParts * width_;
    double* const __restrict variances = values + width_;
    double* const __restrict squares = variances + width_;
    double* const __restrict largest = squares + width_;
    for (int64_t d = 0; d < width_; ++d) {
      const Estimate term = weight * operand(from[d], unit);
      values[d] += term.value;
      variances[d] += term.variance;
      squares[d] += square(term.value);
      largest[d] = std::max(largest[d], square(values[d]));
    }
    ++terms_[static_cast<size_t>(row)];
  }
  Estimate total(int64_t row, int64_t column, double unit) const {
    const double* const value = parts_.data() + row * kParts * width_ + column;
    const double variance = value[width_], squares = value[2 * width_], largest = value[3 * width_];
    const auto terms = static_cast<double>(terms_[static_cast<size_t>(row)]);
    return {*value, variance + terms * square(unit) * (largest + squares)};
  }

 private:
  static constexpr int64_t kParts = 4;

  int64_t width_;
  std::vector<int64_t> terms_;  // of each row
  std::vector<double> parts_;   // of each row the values, variances, sums of squares and largest squares
};

}  // namespace hstujit
