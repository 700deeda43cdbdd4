// Masks, scores and operands as users write them.
#include <algorithm>
#include <cmath>

#include "compiler/expression/evaluate.h"
#include "compiler/expression/magnitude.h"
#include "compiler/expression/parse.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

void mask(std::string_view input) {
  constexpr ExpressionName kNames[] = {{"row", "row"}, {"col", "column"}, {"n", "n"}, {"targets", "t"}};
  const auto read = parse_condition(input, kNames);
  if (!parsed(read)) {
    expect(read.status().message().size() < 400, "a refusal is a sentence, and does not have all of a long text");
    return;
  }
  const std::string text = to_text(*read, kNames);
  const auto again = parse_condition(text, kNames);
  expect(parsed(again), "what is printed can be read");
  expect(to_text(*again, kNames) == text, "and is printed as it was");
  ExpressionEvaluator first(*read), second(*again);
  const int64_t values[] = {70, 30, 100, 5};
  const int64_t value = first.at(values);
  expect(value == second.at(values) && (value == 0 || value == 1), "both say the same of a pair");
  const Interval rows = {0, 100}, intervals[] = {rows, rows, rows, rows};
  const Interval over = first.over(intervals);
  expect(over.low <= value && value <= over.high, "an interval has the value of a point in it");
  expect(largest_magnitude(*read, intervals) >= 0, "magnitudes do not overflow");
}

// Declarations, and a score that reads them.
void operands(std::string_view input) {
  const size_t end = std::min(input.find('\n'), input.size());
  const auto read = parse_own_operands(input.substr(0, end), 4);
  if (!parsed(read)) {
    expect(read.status().message().size() < 400, "a refusal is a sentence, and does not have all of a long text");
    return;
  }
  const std::string text = canonical_own_operands(input.substr(0, end), 4);
  expect(canonical_own_operands(text, 4) == text, "what is printed declares the same");
  const std::string_view score = input.substr(std::min(end + 1, input.size()));
  if (!parsed(parse_score(score, *read))) return;
  const std::string printed = canonical_score(score, *read);
  expect(parsed(parse_score(printed, *read)), "what is printed can be read");
  expect(canonical_score(printed, *read) == printed, "and is printed as it was");
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void score(std::string_view input) {
  const auto read = parse_score(input);
  if (!parsed(read)) {
    expect(read.status().message().size() < 600, "a refusal is a sentence, and does not have all of a long text");
    return;
  }
  const std::string text = canonical_score(input);
  expect(parsed(parse_score(text)), "what is printed can be read");
  expect(canonical_score(text) == text, "and is printed as it was");
  HstuAttentionParams params;
  params.score = input;
  expect(score_work(params) >= 1, "no score costs less than nothing");
  const ScoreFormula first(params, 0.5);
  params.score = text;
  const ScoreFormula second(params, 0.5);
  const ScorePlace place = {70, 30, 100, 5, 0};
  const FormulaPoint one = first.at(0.75, place, FormulaDetail::kErrors);
  const FormulaPoint other = second.at(0.75, place, FormulaDetail::kErrors);
  expect(same(one.value, other.value) && same(one.slope, other.slope), "both say the same of a pair");
  expect(same(one.value, first.value(0.75, place)), "a value does not depend on what else is asked for");
}

}  // namespace

void expression(std::string_view input) {
  mask(input);
  score(input);
  operands(input);
}

}  // namespace hstujit::fuzz
