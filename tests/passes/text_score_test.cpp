// Scores in text as IR: their values and derivatives against those of the formula, and rows outside of the sequence.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/region_functions.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "tests/passes/attention_cases.h"
#include "tests/passes/evaluate.h"
#include "tests/spec/random_score.h"

namespace hstujit {
namespace {

constexpr double kAlpha = 0.25;

HstuAttentionParams with_text(const std::string& score) {
  HstuAttentionParams params = attention_params();
  params.num_targets = true;
  params.score = score;
  return params;
}

std::vector<double> arguments_of(double x, const ScorePlace& at) {
  const auto real = [](int64_t integer) { return static_cast<double>(integer); };
  return {x / kAlpha, real(at.row), real(at.col), real(at.n), real(at.targets), real(at.head), kAlpha};
}

void expect_near(double actual, double expected, double size, const std::string& what) {
  EXPECT_NEAR(actual, expected, 2e-6 * (1 + std::abs(expected) + size)) << what;
}

TEST(TextScore, IrEqualsTheFormula) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const std::string text = test::random_score(seed).text;

    const HstuAttentionParams params = with_text(text);
    Regions regions = build_regions(params);
    Evaluator<double> score(regions.function(kScore)), grad(regions.function(kScoreGrad));
    const ScoreFormula formula(params, kAlpha);
    for (const ScorePlace& place :
         {ScorePlace{0, 0, 1, 0, 0}, ScorePlace{40, 7, 90, 3, 1}, ScorePlace{3, 64, 65, 5, 0}}) {
      for (const double x : {-2.37, -0.61, 0.43, 3.19}) {
        const FormulaPoint expected = formula.at(x, place, FormulaDetail::kErrors);
        const std::vector<double> both = grad.reals(arguments_of(x, place));
        expect_near(score.reals(arguments_of(x, place))[0], expected.value, expected.value_by_rounding, text);
        expect_near(both[0], expected.value, expected.value_by_rounding, text);
        // The slope with respect to the raw product, and the rounding of constants to fp32.
        expect_near(both[1], kAlpha * expected.slope, expected.slope_by_rounding, text);
      }
    }
  }
}

TEST(TextScore, RowsOutsideOfTheSequenceAreFinite) {
  for (const char* text : {"x / (n - row)", "log(row + 0.5)", "silu(x) / (row + 1)", "sqrt(abs(x) * row)",
                           "pow(1.0 * row + 1, -0.5)", "exp(1.0 * row * row)"}) {
    Regions regions = build_regions(with_text(text));
    Evaluator<double> grad(regions.function(kScoreGrad));
    for (const int64_t row : {-64, -1, 90, 91, 200}) {
      for (const double value : grad.reals(arguments_of(0, {row, 5, 90, 3, 0}))) EXPECT_EQ(value, 0) << text << row;
    }
    if (std::string_view(text) != "sqrt(abs(x) * row)") {
      EXPECT_NE(grad.reals(arguments_of(1, {2, 1, 90, 3, 0}))[0], 0) << text;
    }
  }
}

TEST(TextScore, ANameIsItsText) {
  for (const auto& [name, text] : {std::pair{"silu", "silu(x)"},
                                   {"relu", "relu(x)"},
                                   {"relu2", "pow(relu(x), 2)"},
                                   {"sigmoid", "sigmoid(x)"},
                                   {"tanh", "tanh(x)"},
                                   {"gelu", "gelu(x)"},
                                   {"identity", "x"}}) {
    HstuAttentionParams params = attention_params();
    params.score = name;
    const Regions named = build_regions(params);
    params.score = text;
    EXPECT_EQ(to_text(*named.module), to_text(*build_regions(params).module)) << name;
  }
}

}  // namespace
}  // namespace hstujit
