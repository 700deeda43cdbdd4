// The IR that operators are built as.
#include "compiler/ir/build.h"

#include <gtest/gtest.h>

#include "compiler/ir/hstu.h"
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tests/golden/golden.h"
#include "tests/passes/attention_cases.h"

namespace hstujit {
namespace {

TEST(BuildIr, MatchesGoldenFile) {
  const auto context = make_context();
  HstuAttentionParams params = attention_params();
  params.num_targets = true;
  const auto module = build_module(*context, HstuAttentionSpec(params));
  ASSERT_TRUE(module.ok()) << module.status().message();
  expect_golden("ir/hstu_attention.mlir", to_text(**module));
}

TEST(BuildIr, TextReadsBack) {
  const auto context = make_context();
  for (const auto& [name, params] : named_cases()) {
    const auto module = build_module(*context, HstuAttentionSpec(params));
    ASSERT_TRUE(module.ok()) << name;
    const std::string text = to_text(**module);
    const auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
}

// Groups, columns of a tensor, and random numbers.
TEST(BuildIr, TextOfRowsReadsBack) {
  const auto context = make_context();
  HstuNormMulDropoutParams params;
  params.width = 12;
  params.group_norm = params.concat_u = params.dropout = true;
  params.heads = 3;
  const auto module = build_module(*context, HstuNormMulDropoutSpec(params));
  ASSERT_TRUE(module.ok()) << module.status().message();
  const std::string text = to_text(**module);
  for (const char* part : {"hstu.row 12 groups 3", "from 12", "columns 24 from 12"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  ASSERT_TRUE(parsed) << text;
  EXPECT_EQ(to_text(*parsed), text);
  std::string uneven = text;
  uneven.replace(uneven.find("groups 3"), 8, "groups 5");
  mlir::ScopedDiagnosticHandler quiet(context.get(), [](mlir::Diagnostic&) { return mlir::success(); });
  EXPECT_FALSE(mlir::parseSourceString<mlir::ModuleOp>(uneven, context.get()));
}

TEST(BuildIr, RunPassesMatchesGoldenFile) {
  for (const auto& [name, params] : named_cases()) {
    const Regions regions = build_regions(params);
    expect_golden("ir/" + name + ".mlir", to_text(*regions.module));
  }
}

TEST(BuildIr, UnknownScoreIsUnsupported) {
  const auto context = make_context();
  HstuAttentionParams params = attention_params();
  params.score = "softmax";
  const auto module = build_module(*context, HstuAttentionSpec(params));
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().code(), Code::kUnsupported);
  EXPECT_NE(module.status().message().find("softmax"), std::string::npos);
}

TEST(Dialect, RejectsRegionsOfOtherTypes) {
  const auto context = make_context();
  const auto module = build_module(*context, HstuAttentionSpec(attention_params()));
  ASSERT_TRUE(module.ok());
  std::string text = to_text(**module);
  const size_t place = text.rfind("hstu.yield");
  text.replace(place, std::string::npos, "%no = arith.constant true\n hstu.yield %no : i1\n }\n}");
  mlir::ScopedDiagnosticHandler quiet(context.get(), [](mlir::Diagnostic&) { return mlir::success(); });
  EXPECT_FALSE(mlir::parseSourceString<mlir::ModuleOp>(text, context.get()));
}

}  // namespace
}  // namespace hstujit
