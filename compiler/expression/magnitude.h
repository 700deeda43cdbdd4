// How large the integers are that kernels compute for an expression.
#pragma once

#include <span>

#include "compiler/expression/evaluate.h"

namespace hstujit {

// A bound of the magnitude of every value of the expression, and of every bound that solving it for one of its symbols
// computes on the way, where the symbols are in `values`. A condition is solved from its comparisons down to the
// symbol: a sum on the way adds a value to the bound, a quotient multiplies it by its divisor
// (and adds less than that, which is left out).
int64_t largest_magnitude(const Expression& expression, std::span<const Interval> values);

// A bound of the magnitude of the integers of an expression that may have real numbers; values of these are passed
// over, and so are integers of 64 bits.
int64_t largest_integer(const Expression& expression, std::span<const Interval> values);

}  // namespace hstujit
