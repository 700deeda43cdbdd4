// Scores and their derivatives, evaluated from the IR.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "compiler/ir/region_functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "tests/passes/attention_cases.h"
#include "tests/passes/evaluate.h"

namespace hstujit {
namespace {

double expected_score(const std::string& name, double s) {
  if (name == "silu") return s / (1 + std::exp(-s));
  if (name == "relu") return std::max(s, 0.0);
  if (name == "relu2") return std::max(s, 0.0) * std::max(s, 0.0);
  if (name == "sigmoid") return 1 / (1 + std::exp(-s));
  if (name == "tanh") return std::tanh(s);
  if (name == "gelu") return 0.5 * s * std::erfc(-s / std::sqrt(2.0));
  return s;
}

// Arguments of a score that does not ask where the pair is.
template <typename Real>
std::vector<Real> at(Real x, Real alpha) {
  return {x, 0, 0, 0, 0, 0, alpha};
}

Regions with_score(const std::string& name) {
  HstuAttentionParams params = attention_params();
  params.score = name;
  return build_regions(params);
}

TEST(Score, EqualsFormula) {
  for (const std::string& name : all_scores()) {
    Regions regions = with_score(name);
    Evaluator<double> score(regions.function(kScore));
    for (double x = -40; x <= 40; x += 0.37) {
      const double expected = expected_score(name, 0.25 * x);
      EXPECT_NEAR(score.reals(at(x, 0.25))[0], expected, 1e-7 * std::max(1.0, std::abs(expected)))
          << name << " at " << x;
    }
  }
}

TEST(Score, DerivativeAgreesWithDifferences) {
  constexpr double kStep = 1e-5;
  for (const std::string& name : all_scores()) {
    Regions regions = with_score(name);
    Evaluator<double> score(regions.function(kScore)), grad(regions.function(kScoreGrad));
    for (double x = -30.05; x <= 30; x += 0.31) {
      for (const double alpha : {1.0, 0.125}) {
        const auto result = grad.reals(at(x, alpha));
        EXPECT_DOUBLE_EQ(result[0], score.reals(at(x, alpha))[0]) << name << " at " << x;
        const double difference =
            (score.reals(at(x + kStep, alpha))[0] - score.reals(at(x - kStep, alpha))[0]) / (2 * kStep);
        EXPECT_NEAR(result[1], difference, 1e-6 * std::max(1.0, std::abs(difference))) << name << " at " << x;
      }
    }
  }
}

TEST(Score, NoNanAtHugeInputs) {
  for (const std::string& name : all_scores()) {
    Regions regions = with_score(name);
    Evaluator<float> score(regions.function(kScore)), grad(regions.function(kScoreGrad));
    for (const float magnitude : {0.0f, 1e-40f, 88.0f, 200.0f, 1e6f, 1e18f, 1e30f, std::numeric_limits<float>::max()}) {
      for (const float x : {magnitude, -magnitude}) {
        EXPECT_FALSE(std::isnan(score.reals(at(x, 0.125f))[0])) << name << " at " << x;
        for (const float value : grad.reals(at(x, 0.125f))) EXPECT_FALSE(std::isnan(value)) << name << " at " << x;
      }
    }
  }
}

// Only the scalars of a score are known to be uniform: an argument of another function depends on the element.
TEST(Score, FactorsAreGatheredForScalarsAlone) {
  const auto outer_left_is_product = [](const std::string& name) {
    const auto context = make_context();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @" + name +
            "(%x: f32, %row: index, %col: index, %n: index, %t: index, %head: index, "
            "%y: f32) -> f32 {\n"
            "  %c = arith.constant 3.0 : f32\n"
            "  %0 = arith.mulf %x, %c : f32\n"
            "  %1 = arith.mulf %0, %y : f32\n"
            "  return %1 : f32\n}",
        context.get());
    EXPECT_TRUE(module);
    EXPECT_TRUE(run_passes(*module).ok());
    auto function = module->lookupSymbol<mlir::func::FuncOp>(name);
    auto outer = function.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mlir::arith::MulFOp>();
    EXPECT_TRUE(outer);
    return outer.getLhs().getDefiningOp<mlir::arith::MulFOp>() != nullptr;
  };
  EXPECT_FALSE(outer_left_is_product("score"));
  EXPECT_TRUE(outer_left_is_product("normalised"));
}

}  // namespace
}  // namespace hstujit
