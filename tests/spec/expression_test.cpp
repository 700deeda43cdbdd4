// Expressions of random operations: what is bound, what intervals and spans say, against values at every point.
#include "compiler/expression/expression.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "compiler/expression/bind.h"
#include "compiler/expression/spans.h"

namespace hstujit {
namespace {

constexpr int64_t kValues = 6;  // each number is in [0, kValues)

// Of numbers x, y, z and a flag, with every operator.
class RandomExpression {
 public:
  explicit RandomExpression(uint64_t seed) : random_(seed) {}

  Expression make() {
    numbers_ = {builder_.number("x"), builder_.number("y"), builder_.number("z"), builder_.integer(pick(7) - 3)};
    flags_ = {builder_.flag("flag"), builder_.truth(pick(2) == 0)};
    for (int i = 0; i < 14; ++i) add_node();
    return std::move(builder_).finish(builder_.both(flags_.back(), flags_[flags_.size() - 2]));
  }

 private:
  int64_t pick(int64_t below) { return std::uniform_int_distribution<int64_t>(0, below - 1)(random_); }
  Term number() { return numbers_[static_cast<size_t>(pick(static_cast<int64_t>(numbers_.size())))]; }
  Term flag() { return flags_[static_cast<size_t>(pick(static_cast<int64_t>(flags_.size())))]; }

  void add_node() {
    const Term a = number(), b = number(), p = flag(), q = flag();
    switch (pick(18)) {
      case 0:
        return numbers_.push_back(builder_.add(a, b));
      case 1:
        return numbers_.push_back(builder_.sub(a, b));
      case 2:
        return numbers_.push_back(builder_.mul(a, b));
      case 3:
        return numbers_.push_back(builder_.div(a, b));
      case 4:
        return numbers_.push_back(builder_.max(a, b));
      case 5:
        return numbers_.push_back(builder_.min(a, b));
      case 6:
        return numbers_.push_back(builder_.abs(a));
      case 7:
        return numbers_.push_back(builder_.select(p, a, b));
      case 8:
        return flags_.push_back(builder_.select(p, q, flag()));
      case 9:
        return flags_.push_back(builder_.both(p, q));
      case 10:
        return flags_.push_back(builder_.either(p, q));
      case 11:
        return flags_.push_back(builder_.negate(p));
      case 12:
        return flags_.push_back(builder_.eq(a, b));
      case 13:
        return flags_.push_back(builder_.lt(a, b));
      case 14:
        return flags_.push_back(builder_.le(a, b));
      case 15:
        return flags_.push_back(builder_.gt(a, b));
      default:
        return flags_.push_back(builder_.ge(a, b));
    }
  }

  std::mt19937_64 random_;
  ExpressionBuilder builder_;
  std::vector<Term> numbers_, flags_;
};

// Calls `check` with every (x, y, z, flag).
template <typename Check>
void at_every_point(const Check& check) {
  for (int64_t x = 0; x < kValues; ++x)
    for (int64_t y = 0; y < kValues; ++y)
      for (int64_t z = 0; z < kValues; ++z)
        for (const int64_t flag : {0, 1}) check(x, y, z, flag);
}

TEST(Expression, WhatIsBoundHasTheSameValues) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Expression whole = RandomExpression(seed).make();
    const Expression folded = bind_symbols(whole, {});
    ExpressionEvaluator of_whole(whole), of_folded(folded);
    at_every_point([&](int64_t x, int64_t y, int64_t z, int64_t flag) {
      const int64_t values[] = {x, y, z, flag};
      const int64_t value = of_whole.at(values);
      ASSERT_EQ(of_folded.at(values), value) << "seed " << seed;
      if (x + flag != 3) return;  // some of them
      const Expression bound = bind_symbols(whole, {{"z", z}, {"flag", flag}, {"no such symbol", 1}});
      ASSERT_EQ(bound.symbols().size(), 2U);
      const int64_t rest[] = {x, y};
      ASSERT_EQ(ExpressionEvaluator(bound).at(rest), value) << "seed " << seed;
      const Expression constant = bind_symbols(bound, {{"x", x}, {"y", y}});
      ASSERT_EQ(constant.nodes().size(), 1U) << "seed " << seed;
      ASSERT_EQ(constant.node(0).value, value);
    });
  }
}

TEST(Expression, IntervalsHaveTheValueOfEveryPointInThem) {
  std::mt19937_64 random(1);
  const auto interval = [&](int64_t max) -> Interval {
    const auto a = static_cast<int64_t>(random() % static_cast<uint64_t>(max + 1));
    const auto b = static_cast<int64_t>(random() % static_cast<uint64_t>(max + 1));
    return {std::min(a, b), std::max(a, b)};
  };
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Expression whole = RandomExpression(seed).make();
    const Expression folded = bind_symbols(whole, {});
    ExpressionEvaluator of_whole(whole), of_folded(folded);
    const Interval values[] = {interval(kValues - 1), interval(kValues - 1), interval(kValues - 1), interval(1)};
    const Interval found = of_whole.over(values), found_folded = of_folded.over(values);
    const auto inside = [](const Interval& in, int64_t value) { return in.low <= value && value <= in.high; };
    at_every_point([&](int64_t x, int64_t y, int64_t z, int64_t flag) {
      const int64_t point[] = {x, y, z, flag};
      for (int i = 0; i < 4; ++i) {
        if (!inside(values[i], point[i])) return;
      }
      const int64_t value = of_whole.at(point);
      ASSERT_TRUE(inside(found, value) && inside(found_folded, value)) << "seed " << seed;
      const Interval same[] = {{x, x}, {y, y}, {z, z}, {flag, flag}};
      ASSERT_EQ(of_whole.over(same), (Interval{value, value})) << "seed " << seed;
    });
  }
}

TEST(Expression, SpansHaveEveryPointWhereItHolds) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Expression folded = bind_symbols(RandomExpression(seed).make(), {});
    ExpressionEvaluator evaluator(folded);
    SpanSolver solver(folded, 0);
    const auto low = static_cast<int64_t>(seed % 3), high = static_cast<int64_t>(2 + seed % 4);
    const Interval values[] = {{}, {low, high}, {1, 1}, {0, 1}};
    const std::vector<Span> spans = solver.solve(values, 0, kValues - 1);
    int64_t end = -1;
    for (const Span& span : spans) {
      ASSERT_LT(end, span.begin) << "apart and ascending";
      ASSERT_LT(span.begin, span.end);
      end = span.end;
    }
    ASSERT_LE(end, kValues);
    at_every_point([&](int64_t x, int64_t y, int64_t z, int64_t flag) {
      const int64_t point[] = {x, y, z, flag};
      if (y < low || y > high || z != 1 || evaluator.at(point) == 0) return;
      bool inside = false;
      for (const Span& span : spans) inside = inside || (span.begin <= x && x < span.end);
      ASSERT_TRUE(inside) << "seed " << seed << " x " << x;
    });
  }
}

TEST(Expression, SpansOfLinesAreExact) {
  ExpressionBuilder e;
  const Term x = e.number("x"), row = e.number("row");
  // x in [row - 3, row] or max(x - 10, 0) >= 7, but not 2 x = 40
  const Term near = e.both(e.le(x, row), e.le(e.sub(row, x), e.integer(3)));
  const Term far = e.ge(e.max(e.sub(x, e.integer(10)), e.integer(0)), e.integer(7));
  const Term whole = e.both(e.either(near, far), e.negate(e.eq(e.mul(e.integer(2), x), e.integer(40))));
  const Expression folded = bind_symbols(std::move(e).finish(whole), {});
  SpanSolver solver(folded, 0);
  const Interval rows[] = {{}, {5, 8}};
  EXPECT_EQ(solver.solve(rows, 0, 29), (std::vector<Span>{{2, 9}, {17, 20}, {21, 30}}));
  EXPECT_EQ(solver.solve(rows, 3, 18), (std::vector<Span>{{3, 9}, {17, 19}}));
  const Interval none[] = {{}, {-9, -9}};
  EXPECT_EQ(solver.solve(none, 0, 16), std::vector<Span>());
}

TEST(Expression, AnAbsoluteValueBelowABoundIsARange) {
  ExpressionBuilder e;
  const Term distance = e.abs(e.sub(e.number("x"), e.number("row")));
  const Expression folded = bind_symbols(std::move(e).finish(e.le(distance, e.integer(4))), {});
  SpanSolver solver(folded, 0);
  const Interval rows[] = {{}, {100, 110}};
  EXPECT_EQ(solver.solve(rows, 0, 999), (std::vector<Span>{{96, 115}}));
}

TEST(Expression, LargeNumbersNeitherTrapNorLeaveTheirIntervals) {
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max(), kLowest = std::numeric_limits<int64_t>::min();
  for (const Operator op : {Operator::kAdd, Operator::kSub, Operator::kMul, Operator::kDiv, Operator::kAbs}) {
    for (const int64_t a : {kLowest, int64_t{-1}, int64_t{0}, int64_t{1}, kHighest}) {
      for (const int64_t b : {kLowest, int64_t{-1}, int64_t{0}, int64_t{1}, kHighest}) {
        evaluate_point(op, a, b, 0);
        const Interval over = evaluate_interval(op, {a, a}, {b, b}, {});
        EXPECT_LE(over.low, over.high);
      }
    }
  }
  EXPECT_EQ(evaluate_point(Operator::kDiv, 7, 0, 0), 0);
  EXPECT_EQ(evaluate_point(Operator::kDiv, -7, 2, 0), -3);
}

}  // namespace
}  // namespace hstujit
