// Expressions of random operations: what is bound, what intervals and spans say, against values at every point.
#include "compiler/expression/expression.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "compiler/expression/bind.h"
#include "compiler/expression/kernel_form.h"
#include "compiler/expression/spans.h"
#include "tests/spec/random_expression.h"

namespace hstujit {
namespace {

TEST(Expression, WhatIsBoundHasTheSameValues) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Expression whole = RandomExpression(seed).make();
    const Expression folded = bind_symbols(whole, {}), of_kernels = kernel_form(whole, {});
    ExpressionEvaluator of_whole(whole), of_folded(folded), of_kernel(of_kernels);
    at_every_point([&](int64_t x, int64_t y, int64_t z, int64_t flag) {
      const int64_t values[] = {x, y, z, flag};
      const int64_t value = of_whole.at(values);
      ASSERT_EQ(of_folded.at(values), value) << "seed " << seed;
      ASSERT_EQ(of_kernel.at(values), value) << "seed " << seed;
      if (x + flag != 3) return;  // some of them
      const Expression bound = bind_symbols(whole, {{"z", z}, {"flag", flag}, {"no such symbol", 1}});
      ASSERT_EQ(bound.symbols().size(), 2U);
      const int64_t rest[] = {x, y};
      ASSERT_EQ(ExpressionEvaluator(bound).at(rest), value) << "seed " << seed;
      const Expression constant = bind_symbols(bound, {{"x", x}, {"y", y}});
      ASSERT_EQ(constant.nodes().size(), 1U) << "seed " << seed;
      ASSERT_EQ(constant.node(0).value, value);
      ASSERT_EQ(kernel_form(whole, {{"x", x}, {"y", y}, {"z", z}, {"flag", flag}}).node(0).value, value);
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
