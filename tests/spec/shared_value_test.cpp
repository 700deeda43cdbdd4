// The part of a score that all heads have in common.
#include "compiler/spec/operators/hstu_attention/shared_value.h"

#include <gtest/gtest.h>

#include "compiler/expression/parse.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {
namespace {

constexpr const char* kOperands =
    "ts: row(int64), pos: table(99), age: table(9), far: table(9, heads), slope: head, gain: scalar, gate: row(heads)";

std::string text_of(const Expression& expression) {
  std::vector<ExpressionName> names;
  for (const Expression::Symbol& symbol : expression.symbols()) {
    const bool indexed = symbol.name == "ts" || symbol.name == "pos" || symbol.name == "age" || symbol.name == "far";
    const bool read = indexed || symbol.name == "slope" || symbol.name == "gain";
    names.push_back({symbol.name, symbol.name, symbol.real,
                     indexed ? Reads::kAtIndex
                     : read  ? Reads::kElement
                             : Reads::kValue});
  }
  return to_text(expression, names);
}

struct Split {
  const char *score, *value, *rest;
};

TEST(SharedValue, IsSplitOff) {
  const Split splits[] = {
      {"silu(x + pos[col - row + 49] + age[int(log(1.0 + abs(ts[row + 1] - ts[col])))])",
       "pos[col - row + 49] + age[int(log(1.0 + abs(ts[row + 1] - ts[col])))]", "silu(x + value)"},
      {"silu(x - pos[row // 2 - col] - slope * (row - col) + age[row])", "-pos[row // 2 - col] + age[row]",
       "silu(x - slope * (row - col) + value)"},
      {"silu(x) + gain * pow(1.0 + abs(ts[row] - ts[col]), -0.5)", "gain * pow(1.0 + abs(ts[row] - ts[col]), -0.5)",
       "silu(x) + value"},
      {"tanh(x) * log(2.0 + abs(ts[row] - ts[col]))", "log(2.0 + abs(ts[row] - ts[col]))", "tanh(x) * value"}};
  const std::vector<Operand> operands = own_operands(kOperands, 4);
  for (const auto& [score, value, rest] : splits) {
    const std::optional<SplitScore> split = split_score(parse_score(score, operands).value(), operands);
    ASSERT_TRUE(split.has_value()) << score;
    EXPECT_EQ(text_of(split->value), value);
    EXPECT_EQ(text_of(split->rest), rest);
  }
}

TEST(SharedValue, IsNothingWhereHeadsDifferOrItIsCheap) {
  const std::vector<Operand> operands = own_operands(kOperands, 4);
  for (const char* score : {"silu(x)", "silu(x + far[row - col])", "silu(x - slope * (row - col))", "silu(x + gain)",
                            "silu(x) * exp(-0.01 * abs(row - col))", "silu(x + age[int(x)])"})
    EXPECT_FALSE(split_score(parse_score(score, operands).value(), operands)) << score;
}

}  // namespace
}  // namespace hstujit
