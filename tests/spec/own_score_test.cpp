// Scores in text: what is read, what is refused and where, what they are worth, and what becomes of them as parameters.
#include "compiler/spec/operators/hstu_attention/own_score.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/expression/parse.h"
#include "compiler/spec/config.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/support/text.h"
#include "tests/paths.h"
#include "tests/spec/random_score.h"
#include "tests/support/whole_file.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Json with_score(std::string_view score, const Json& others = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 64}, {"hidden_dim", 64}, {"score", score}};
  json.update(others);
  return json;
}

Json canonical_of(const Json& json) {
  const auto spec = parse_op_spec(json, "op");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? Json((*spec)->to_json()) : Json();
}

std::string refused_score(const Json& json) {
  const auto spec = parse_op_spec(json, "op");
  EXPECT_FALSE(spec.ok()) << json;
  return spec.ok() ? "" : spec.status().message();
}

std::string refusal_of_score(std::string_view text) {
  const Result<Expression> expression = parse_score(text);
  EXPECT_FALSE(expression.ok()) << text;
  return expression.ok() ? "" : expression.status().message();
}

ScoreFormula formula_of(std::string score, double alpha = 0.5) {
  HstuAttentionParams params = {.heads = 3, .attn_dim = 8, .hidden_dim = 8, .num_targets = true};
  params.score = std::move(score);
  return ScoreFormula(params, alpha);
}

double work_of(std::string score, std::string operands = "") {
  HstuAttentionParams params = {.heads = 3};
  params.score = std::move(score);
  params.operands = std::move(operands);
  return score_work(params);
}

TEST(OwnScore, ReadsNumbers) {
  const ScorePlace place = {7, 3, 20, 4, 1};
  const auto value = [&](const char* text, double x = 1.5) { return formula_of(text).value(x, place); };
  EXPECT_EQ(value("x"), 1.5);
  EXPECT_EQ(value("x + row - col"), 5.5);
  EXPECT_EQ(value("row / col"), 7.0 / 3);
  EXPECT_EQ(value("row // 2 + x * 2"), 6);
  EXPECT_EQ(value("-x - -2.5e0"), 1);
  EXPECT_EQ(value("where(x > 1 and row >= col, 3, x)"), 3);
  EXPECT_EQ(value("where(x != 1.5, 3, head + heads)"), 4);
  EXPECT_EQ(value("min(row, x, 9)"), 1.5);
  EXPECT_EQ(value("clamp(x, 2, 6)"), 2);
  EXPECT_EQ(value("abs(col - row) * alpha"), 2);
  EXPECT_EQ(value("int(-2.75) + floor(-2.75)"), -5);
  EXPECT_EQ(value("int(1e20) + int(row)"), kLargestInt + 7);
  EXPECT_EQ(value("pow(x, 2) + pow(2.0, -1)"), 2.75);
  EXPECT_EQ(value("n % 7 + targets"), 10);
  EXPECT_EQ(value("where(0 < x < 2, 1, 0)"), 1);
}

TEST(OwnScore, AMistakeHasItsColumn) {
  EXPECT_EQ(refusal_of_score("silu(x + rwo)"),
            "column 10: there is no \"rwo\", did you mean \"row\"?; numbers are x, row, col, n, targets, head, heads, "
            "alpha, functions abs, clamp, max, min, where, int, floor, exp, log, log2, sqrt, pow, sin, cos, tanh, "
            "sigmoid, silu, gelu, relu, leaky_relu, hardswish");
  EXPECT_EQ(refusal_of_score("silu(x"), "column 7: the expression ends; expected: \")\"");
  EXPECT_EQ(refusal_of_score("silu x"), "column 6: there is \"x\"; expected: \"(\"");
  EXPECT_EQ(refusal_of_score("x // 2"),
            "column 3: // is of integers, and what it divides is real; allowed: /, floor, int");
  EXPECT_EQ(refusal_of_score("row // col"), "column 8: the divisor after // must be a number from 1, as in row // 64");
  EXPECT_EQ(refusal_of_score("x < 3"),
            "column 1: the expression is a condition; allowed: a number, such as where(row - col < 64, silu(x), 0)");
  EXPECT_EQ(refusal_of_score("silu(x < 3)"), "column 6: \"silu\" is of numbers, and this is a condition");
  EXPECT_EQ(refusal_of_score("silu(x, 2)"), "column 1: silu has 2 arguments; allowed: silu(a)");
  EXPECT_EQ(refusal_of_score("x + pow(x)"), "column 5: pow has 1 arguments; allowed: pow(a, b)");
  EXPECT_EQ(refusal_of_score("leaky_relu(x, 1, 2)"),
            "column 1: leaky_relu has 3 arguments; allowed: leaky_relu(a), or leaky_relu(a, slope)");
  EXPECT_EQ(refusal_of_score("leaky_relu(x, x)"),
            "column 15: the slope of leaky_relu is not a number; allowed: such as leaky_relu(x, 0.2)");
  EXPECT_EQ(refusal_of_score("x * 1.5.2"), "column 5: \"1.5.2\" is not a number");
  EXPECT_EQ(refusal_of_score("x * 1e99"), "column 5: 1e99 is too large or too small; allowed: 0, or 1e-30 to 1e+30");
  EXPECT_EQ(refusal_of_score("x * 1e999"), "column 5: 1e999 is too large or too small; allowed: 0, or 1e-30 to 1e+30");
  EXPECT_EQ(refusal_of_score("where(x > 0, x, x > 1)"),
            "column 17: where chooses between two numbers or two conditions, and these are one of each");
  EXPECT_THAT(refusal_of_score("x + row * col"), StartsWith("its integers may be as large as 1099511627776 where"));
  EXPECT_TRUE(parse_score("x + 1.0 * row * col").ok());
  std::string deep = "x";
  for (int i = 0; i < 70; ++i) deep = "silu(" + deep + ")";
  EXPECT_THAT(refusal_of_score(deep), HasSubstr("more than 64 parts are within one another"));
  std::string wide = "x";
  for (int i = 0; i < 300; ++i) wide += " + x";
  EXPECT_THAT(refusal_of_score(wide), HasSubstr("it has too many parts; allowed: up to 512"));
}

TEST(OwnScore, TextsThatSayTheSameAreOneInstance) {
  const Json one = canonical_of(with_score("leaky_relu( (x)+2*row/ 4)"));
  EXPECT_EQ(one["score"], "leaky_relu(x + 2 * row / 4.0, 0.01)");
  EXPECT_EQ(canonical_of(with_score("leaky_relu(x + (2 * row) / 4.0, 1e-2)")), one);
  EXPECT_EQ(canonical_of(one), one) << "the canonical form is canonical";
  for (const char* text : {"int(0)", "x - -3", "-(-x)", "x / 2 / row", "x - (row - col)", "min(0, 1)"}) {
    const std::string printed = canonical_score(text);
    EXPECT_EQ(canonical_score(printed), printed) << text;
  }
}

TEST(OwnScore, WhatANameSaysBecomesTheName) {
  const Json plain = canonical_of(with_score("silu"));
  EXPECT_FALSE(plain.contains("score") && plain["score"] != "silu");
  for (const char* text : {"silu(x)", " ( silu ( x ) )"}) EXPECT_EQ(canonical_of(with_score(text)), plain) << text;
  EXPECT_EQ(canonical_of(with_score("x")), canonical_of(with_score("identity")));
  EXPECT_EQ(canonical_of(with_score("pow(relu(x), 2)")), canonical_of(with_score("relu2")));
  for (const std::string& name : split(kHstuScores, ' ')) {
    EXPECT_TRUE(is_named_score(name));
    EXPECT_EQ(canonical_score(name), name);
    EXPECT_EQ(work_of(name), 1);
  }
}

TEST(OwnScore, RefusalsNameTheParameter) {
  EXPECT_THAT(refused_score(with_score("silu(y)")),
              StartsWith("op.score is \"silu(y)\", but column 6: there is no \"y\""));
  EXPECT_THAT(refused_score(with_score("softmax")), StartsWith("op.score is \"softmax\"; allowed: silu, relu, "));
  EXPECT_THAT(refused_score(with_score("swish")), HasSubstr("did you mean \"silu\"?"));
  EXPECT_THAT(refused_score(with_score("x * targets")), HasSubstr("launches take no num_targets"));
  EXPECT_TRUE(parse_op_spec(with_score("x * targets", {{"num_targets", true}}), "op").ok());
}

TEST(OwnScore, PositionsBoundTheSequences) {
  const auto longest = [](const char* score) {
    const auto spec = parse_op_spec(with_score(score), "op").value();
    const Signature signature = spec->signature(Direction::kForward);
    return signature[static_cast<size_t>(find_argument(signature, "max_seq_len"))].max;
  };
  EXPECT_EQ(longest("silu(x + 0.5 * head)"), longest("silu"));
  EXPECT_EQ(longest("silu(x + 0.5 * row)"), 1 << 20);
}

TEST(OwnScore, WhatMayNotBeFinite) {
  const auto finite = [](const char* score) { return score_is_finite(parse_score(score).value()); };
  for (const char* score : {"silu(x)", "x / 3", "pow(x, 3) + 0.1 * row", "hardswish(x) * sin(row)"})
    EXPECT_TRUE(finite(score));
  for (const char* score : {"x / row", "log(x)", "sqrt(x)", "pow(x, 0.5)", "pow(x, -1)", "exp(x)", "x / 0"})
    EXPECT_FALSE(finite(score));
  const auto reading = [](const char* score) {
    HstuAttentionParams params = {.heads = 3};
    params.score = score;
    params.operands = "slope: head, w: table(9)";
    return score_is_finite(parse_score(params).value());
  };
  EXPECT_TRUE(reading("silu(x - slope * (row - col))"));
  EXPECT_FALSE(reading("silu(x + w[row] + slope)"));
}

TEST(OwnScore, WorkFollowsTheOperations) {
  EXPECT_EQ(work_of("silu(x) * 2"), 7.0 / 6);
  EXPECT_EQ(work_of("relu(x) * 2"), 1);
  EXPECT_GT(work_of("silu(x + s)", "s: scalar"), 1);
  EXPECT_GT(work_of("pow(x, 1.3)"), work_of("exp(x) * exp(row / n)"));
  // A power of what is positive by its form takes two functions, fewer than sin.
  const auto is_cheap = [](std::string_view base) {
    return work_of(fmt::format("pow({}, x)", base)) < work_of(fmt::format("{} + sin(x)", base));
  };
  for (const char* base : {"2.0", "1 + abs(x)", "0.5 + abs(row - col)", "max(x, 0.25)", "min(1 + sqrt(x), 3)",
                           "exp(x) + 1", "abs(x) + sigmoid(x) / 3 + 1e-3"})
    EXPECT_TRUE(is_cheap(base)) << base;
  for (const char* base : {"x", "abs(x)", "1 + x", "exp(x)", "min(x, 0.25)", "1.0 + row", "abs(x) - 1"})
    EXPECT_FALSE(is_cheap(base)) << base;
}

// Not a number stays one, as in PyTorch: a comparison with it does not hold.
TEST(OwnScore, NanPropagates) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* score : {"silu(x)", "relu(x)", "max(x, 0)", "min(0, x)", "clamp(x, -1, 1)", "hardswish(x)",
                            "leaky_relu(x)", "abs(x)", "gelu(x) + row", "pow(x, 2)", "where(x > 0, 1, x)"}) {
    EXPECT_TRUE(std::isnan(formula_of(score).value(nan, {1, 0, 2, 0, 0}))) << score;
  }
  EXPECT_EQ(formula_of("where(x > 0, x, 0)").value(nan, {1, 0, 2, 0, 0}), 0);
}

// The last column of the tables of examples, in the page's order.
std::vector<std::string> examples_of_page(std::string_view heading) {
  const std::string page = whole_file(source_path("/docs/expressions.md")).value();
  std::vector<std::string> texts;
  for (size_t at = page.find(heading); (at = page.find("| `", at)) != std::string::npos;) {
    if (page.substr(at - 1, 1) == "\n") break;  // another table, whose first column has the names
    const size_t begin = at + 3, end = page.find('`', begin);
    texts.push_back(page.substr(begin, end - begin));
    at = end;
  }
  return texts;
}

TEST(OwnScore, TheExamplesOfThePageAreRead) {
  const std::vector<std::string> scores = examples_of_page("### Examples of scores\n");
  EXPECT_EQ(scores.size(), 8U);
  for (const std::string& score : scores) {
    EXPECT_TRUE(parse_op_spec(with_score(score, {{"num_targets", true}}), "op").ok()) << score;
  }
}

const ScorePlace kPlaces[] = {{0, 0, 1, 0, 0}, {5, 3, 40, 2, 1}, {40, 7, 90, 0, 2}, {3, 64, 65, 5, 0}};

TEST(OwnScore, RandomTextsMeanWhatTheySay) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const RandomScore::Part score = random_score(seed);
    const Result<Expression> expression = parse_score(score.text);
    ASSERT_TRUE(expression.ok()) << score.text << ": " << expression.status().message();
    const std::string printed = canonical_score(score.text);
    ASSERT_EQ(canonical_score(printed), printed) << score.text;
    const ScoreFormula first = formula_of(score.text), second = formula_of(printed);
    for (const ScorePlace& at : kPlaces) {
      for (const double x : {-3.7, -0.4, 0.3, 2.9}) {
        const double expected = score.value({x, at.row, at.col, at.n, at.targets, at.head, 0.5});
        ASSERT_NEAR(first.value(x, at), expected, 1e-12 * std::max(1.0, std::abs(expected))) << score.text;
        ASSERT_EQ(first.value(x, at), second.value(x, at)) << printed;
      }
    }
  }
}

// Slope and curvature are what differences of the value and of the slope say, but at bends.
TEST(OwnScore, DerivativesAreDifferences) {
  constexpr double kStep = 1e-5;
  int compared = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const RandomScore::Part score = random_score(seed);
    const ScoreFormula formula = formula_of(score.text);
    for (const ScorePlace& place : kPlaces) {
      for (const double x : {-2.37, -0.61, 0.43, 3.19}) {
        const auto at = [&](double there) { return formula.at(there, place, FormulaDetail::kErrors); };
        const FormulaPoint here = at(x), above = at(x + kStep), below = at(x - kStep);
        const double slope = (above.value - below.value) / (2 * kStep);
        const double curvature = (above.slope - below.slope) / (2 * kStep);
        // A bend in between shows in the second difference.
        const double second = (above.value - 2 * here.value + below.value) / (kStep * kStep);
        if (std::abs(second - here.curvature) > 1e-2 * (1 + std::abs(here.curvature) + std::abs(here.value))) continue;
        ++compared;
        EXPECT_NEAR(here.slope, slope, 1e-6 * (1 + std::abs(slope) + std::abs(here.value)))
            << score.text << " at " << x;
        EXPECT_NEAR(here.curvature, curvature, 1e-5 * (1 + std::abs(curvature) + std::abs(here.slope)))
            << score.text << " at " << x;
        EXPECT_EQ(formula.at(x, place, FormulaDetail::kSlope).slope, here.slope);
      }
    }
  }
  EXPECT_GT(compared, 12000);
}

}  // namespace
}  // namespace hstujit::test
