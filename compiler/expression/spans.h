// For which values of one symbol an expression may hold, while the others are somewhere in intervals: the columns that
// a tile of rows sees, without a look at each of them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "compiler/expression/evaluate.h"

namespace hstujit {

struct Span {
  int64_t begin = 0, end = 0;  // [begin, end)

  bool operator==(const Span&) const = default;
};

// Solves for one thread, and keeps the memory for values. The expression must outlive it and be one of bind_symbols(),
// since booleans are known by where they may hold, and so none can be negated.
//
// Every value for which the expression holds somewhere is in a span. Integers are followed as lines in the symbol, so
// spans are exact as far as sums, differences, multiples, maxima and minima of lines are compared, and comparisons that
// "and" joins can hold at once where each of them can. Integers must be below 2^40 in magnitude.
class SpanSolver {
 public:
  SpanSolver(const Expression& expression, int symbol) : expression_(expression), symbol_(symbol) {
    values_.resize(expression.nodes().size());
  }

  // Ascending and apart from one another, within [first, last]; `values` has one interval of each symbol, of which that
  // of the solver's own is passed over. The result holds until the next call.
  const std::vector<Span>& solve(std::span<const Interval> values, int64_t first, int64_t last);

 private:
  // slope * symbol + rest
  struct Line {
    int64_t slope = 0;
    Interval rest;
  };
  // A few spans; the place for others is left as it is.
  class Set {
   public:
    void clear() { size_ = 0; }
    // In order of begin.
    void add(int64_t begin, int64_t end) {
      if (begin >= end) return;
      if (size_ > 0 && (begin <= end_[size_ - 1] || size_ == kMax)) {
        // They touch, or there is no place for another one, so that the gap goes.
        if (end > end_[size_ - 1]) end_[size_ - 1] = end;
      } else {
        begin_[size_] = begin;
        end_[size_++] = end;
      }
    }
    size_t size() const { return size_; }
    Span operator[](size_t i) const { return {begin_[i], end_[i]}; }

   private:
    static constexpr size_t kMax = 8;
    size_t size_ = 0;
    std::array<int64_t, kMax> begin_, end_;
  };
  struct Value {
    Line line;
    Set set;
  };

  void solve_piece(std::span<const Interval> values, const Span& piece);
  void evaluate(const Expression::Node& node, std::span<const Interval> values, const Span& piece, Value& value);
  Line combine(const Expression::Node& node, const Span& piece);
  Line extreme(Operator op, const Line& a, const Line& b, const Span& piece);
  Line magnitude(const Line& a, const Span& piece);
  const Value& operand(const Expression::Node& node, size_t i) const {
    return values_[static_cast<size_t>(node.operands[i])];
  }

  const Expression& expression_;
  int symbol_;
  std::vector<Value> values_;     // by node
  std::optional<int64_t> split_;  // where the piece must be cut in two
  bool bend_ = false;             // since a line has a bend there, whatever the intervals
  std::vector<int64_t> splits_;   // bends that were found, ascending
  std::vector<Span> spans_;
};

}  // namespace hstujit
