// Functions that follow from random conditions, against the conditions at every point.
#include "compiler/expression/derive.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/expression/evaluate.h"
#include "compiler/expression/kernel_form.h"
#include "compiler/expression/parse.h"
#include "tests/spec/random_expression.h"

namespace hstujit {
namespace {

// The results of a function whose symbols have these values.
std::vector<int64_t> results_of(const ExpressionFunction& function, const std::map<std::string, int64_t>& values) {
  std::vector<int64_t> symbols, results;
  for (const Expression::Symbol& symbol : function.expression.symbols()) symbols.push_back(values.at(symbol.name));
  for (const int result : function.results) {
    const Expression of_result = ExpressionBuilder(function.expression).finish({result});
    results.push_back(ExpressionEvaluator(of_result).at(symbols));
  }
  return results;
}

Expression random_condition(uint64_t seed) { return kernel_form(RandomExpression(seed).make(), {}); }

TEST(Derived, TruthsOverRangesAreSound) {
  int64_t decided = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Expression condition = random_condition(seed);
    const SymbolRange ranges[] = {{"x", "x0", "x1"}, {"y", "y0", "y1"}};
    const ExpressionFunction truths = derive_truths(condition, ranges);
    ExpressionEvaluator evaluator(condition);
    const auto x0 = static_cast<int64_t>(seed % 3), y0 = static_cast<int64_t>(seed % 4);
    const int64_t x1 = x0 + 2, y1 = y0 + static_cast<int64_t>(seed % 2);
    for (const int64_t flag : {0, 1}) {
      bool all = true, any = false;
      for (int64_t x = x0; x <= x1; ++x) {
        for (int64_t y = y0; y <= y1; ++y) {
          const int64_t point[] = {x, y, 2, flag};
          const bool holds = evaluator.at(point) != 0;
          all = all && holds;
          any = any || holds;
        }
      }
      const auto found = results_of(truths, {{"x0", x0}, {"x1", x1}, {"y0", y0}, {"y1", y1}, {"z", 2}, {"flag", flag}});
      ASSERT_TRUE(found[0] == 0 || all) << "seed " << seed;
      ASSERT_TRUE(found[1] != 0 || !any) << "seed " << seed;
      decided += found[0] == found[1];
    }
  }
  EXPECT_GT(decided, 600);
}

// An abs is solved for both signs, a where for both values of its condition: within one another they would double.
TEST(Derived, NestedPartsHaveALimit) {
  constexpr ExpressionName kNames[] = {{"row", "row"}, {"col", "column"}, {"n", "n"}};
  std::string distance = "col - row", condition = "col < row";
  for (int i = 0; i < 20; ++i) {
    distance = "abs(" + distance + " - 2)";
    condition = "where(" + condition + ", col < " + std::to_string(i) + ", row > 3)";
  }
  for (const std::string& text : {distance + " <= 5", condition}) {
    const auto mask = parse_condition(text, kNames);
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    const ExpressionFunction range = derive_range(kernel_form(*mask, {}), "column", {"row", "r0", "r1"}, "n");
    EXPECT_LT(range.expression.nodes().size(), 20000u) << text;
  }
}

TEST(Derived, RangesHaveEveryValueThatFulfilsTheCondition) {
  int64_t narrower = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Expression condition = random_condition(seed);
    const ExpressionFunction range = derive_range(condition, "x", {"y", "y0", "y1"}, "z");
    ExpressionEvaluator evaluator(condition);
    const auto y0 = static_cast<int64_t>(seed % 4);
    const int64_t y1 = y0 + static_cast<int64_t>(seed % 3);
    for (const int64_t flag : {0, 1}) {
      const auto ends = results_of(range, {{"y0", y0}, {"y1", y1}, {"z", kValues}, {"flag", flag}});
      ASSERT_GE(ends[0], 0);
      ASSERT_LE(ends[1], kValues);
      narrower += ends[0] > 0 || ends[1] < kValues;
      for (int64_t x = 0; x < kValues; ++x) {
        for (int64_t y = y0; y <= y1; ++y) {
          const int64_t point[] = {x, y, kValues, flag};
          ASSERT_TRUE(evaluator.at(point) == 0 || (ends[0] <= x && x < ends[1])) << "seed " << seed << " x " << x;
        }
      }
    }
  }
  EXPECT_GT(narrower, 600);
}

TEST(Derived, WordsAreTheConditionOfEachBit) {
  int words = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Expression condition = random_condition(seed);
    const auto word = derive_word(condition, "x", "x0");
    if (!word) continue;
    ++words;
    ExpressionEvaluator evaluator(condition);
    for (const int64_t first : {-33, -5, 0, 3}) {
      for (const int64_t y : {0, 4}) {
        const int64_t bits = results_of(*word, {{"x0", first}, {"y", y}, {"z", 1}, {"flag", 1}})[0];
        ASSERT_EQ(bits & ~int64_t{0xffffffff}, 0);
        for (int64_t i = 0; i < 32; ++i) {
          const int64_t point[] = {first + i, y, 1, 1};
          ASSERT_EQ(bits >> i & 1, evaluator.at(point)) << "seed " << seed << " x " << first + i;
        }
      }
    }
  }
  EXPECT_GT(words, 200);
}

// A comparison of two values of the row has no word where the row is not known.
TEST(Derived, AWordIsMissingWhereAnOperationHasNoRule) {
  ExpressionBuilder e;
  const Term row = e.number("row"), first = e.mul(e.div(row, e.integer(64)), e.integer(64));
  const Term whole = e.both(e.eq(first, row), e.lt(e.number("column"), e.number("n")));
  const Expression condition = kernel_form(std::move(e).finish(whole), {});
  EXPECT_TRUE(derive_word(condition, "column", "c0")) << "the row is known there";
  EXPECT_FALSE(derive_word(condition, "row", "r0"));
}

// Nothing is known of a quotient by a symbol, so that what compares it may hold.
TEST(Derived, WhatHasNoRuleMayHold) {
  ExpressionBuilder e;
  const Term quotient = e.div(e.number("row"), e.number("n"));
  const Term whole = e.both(e.lt(quotient, e.integer(3)), e.lt(e.number("column"), e.number("n")));
  const Expression condition = kernel_form(std::move(e).finish(whole), {});
  const SymbolRange ranges[] = {{"row", "r0", "r1"}, {"column", "c0", "c1"}};
  const ExpressionFunction truths = derive_truths(condition, ranges);
  EXPECT_EQ(results_of(truths, {{"r0", 0}, {"r1", 1}, {"c0", 0}, {"c1", 1}, {"n", 9}}), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(results_of(truths, {{"r0", 0}, {"r1", 1}, {"c0", 9}, {"c1", 9}, {"n", 9}}), (std::vector<int64_t>{0, 0}));
  const ExpressionFunction rows = derive_range(condition, "row", ranges[1], "n");
  EXPECT_EQ(results_of(rows, {{"c0", 0}, {"c1", 1}, {"n", 9}}), (std::vector<int64_t>{0, 9}));
}

// A bound mask keeps nothing that it does not use.
TEST(Derived, ConstantsFold) {
  ExpressionBuilder e;
  const Term row = e.number("row"), column = e.number("column"), window = e.number("window");
  const Term near = e.either(e.eq(window, e.integer(0)), e.le(e.sub(row, column), window));
  const Expression whole = std::move(e).finish(e.both(e.le(column, row), near));
  const SymbolRange ranges[] = {{"row", "r0", "r1"}, {"column", "c0", "c1"}};
  const auto truths = derive_truths(kernel_form(whole, {{"window", 0}}), ranges);
  EXPECT_EQ(to_text(truths.expression, {}), "c1 <= r0");
  EXPECT_EQ(to_text(ExpressionBuilder(truths.expression).finish({truths.results[1]}), {}), "c0 <= r1");
}

}  // namespace
}  // namespace hstujit
