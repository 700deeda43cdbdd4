// Masks as users write them.
#include "compiler/expression/evaluate.h"
#include "compiler/expression/magnitude.h"
#include "compiler/expression/parse.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

void expression(std::string_view input) {
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

}  // namespace hstujit::fuzz
