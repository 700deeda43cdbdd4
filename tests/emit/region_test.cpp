// Region functions as text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/emit/expression.h"
#include "compiler/emit/flatten.h"
#include "compiler/emit/region_printer.h"
#include "compiler/ir/region_functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "tests/golden/golden.h"
#include "tests/passes/attention_cases.h"

namespace hstujit {
namespace {

TEST(RegionPrinter, MatchesGoldenFiles) {
  for (const auto& [name, params] : named_cases()) {
    Regions regions = build_regions(params);
    std::string text;
    for (const llvm::StringLiteral function : {kMaskValid, kMaskTile, kMaskColumns, kMaskRows, kScore, kScoreGrad}) {
      const auto printed = print_region(regions.function(function), Activation::kMufu);
      ASSERT_TRUE(printed.ok()) << printed.status().message();
      text += *printed + "\n";
    }
    expect_golden("regions/" + name + ".cuh", text);
  }
}

TEST(RegionPrinter, AccurateActivationCallsCudaFunctions) {
  Regions regions = build_regions(attention_params());
  const auto printed = print_region(regions.function(kScore), Activation::kAccurate);
  ASSERT_TRUE(printed.ok());
  EXPECT_NE(printed->find(" tanhf("), std::string::npos) << *printed;
  EXPECT_EQ(printed->find("fast_"), std::string::npos) << *printed;
}

TEST(RegionPrinter, ScoresInTextAreAFewLines) {
  HstuAttentionParams params = attention_params();
  params.score = "min(x, pow(1.5 + abs(row - col), -0.75)) * int(log2(x))";
  Regions regions = build_regions(params);
  const auto printed = print_region(regions.function(kScore), Activation::kMufu);
  ASSERT_TRUE(printed.ok()) << printed.status().message();
  for (const char* part :
       {"min_nan(", "fast_exp2(", "fast_log2(", "static_cast<int>(", "pair_distance(pair)", "pair.row < pair.n"})
    EXPECT_NE(printed->find(part), std::string::npos) << part << " in " << *printed;
  EXPECT_LT(std::count(printed->begin(), printed->end(), '\n'), 12) << *printed;
}

TEST(RegionPrinter, PowersOfPositiveNumbersAreTwoFunctions) {
  const auto print = [](const char* score, llvm::StringRef function, Activation activation) {
    HstuAttentionParams params = attention_params();
    params.score = score;
    Regions regions = build_regions(params);
    return print_region(regions.function(function), activation).value();
  };
  const char* const distance = "x * pow(1.0 + abs(row - col), -0.75)";
  EXPECT_NE(print(distance, kScore, Activation::kMufu).find("fast_exp2(-0.75f * fast_log2("), std::string::npos);
  EXPECT_NE(print(distance, kScore, Activation::kAccurate).find("powf("), std::string::npos);
  EXPECT_NE(print("x * pow(2.0, head)", kScore, Activation::kMufu).find("fast_exp2(static_cast<float>(pair.head))"),
            std::string::npos);
  EXPECT_NE(print("x * pow(0.5, head)", kScore, Activation::kMufu).find("* -1.0f)"), std::string::npos);
  EXPECT_EQ(print("pow(1.0 + abs(x), 1.5)", kScoreGrad, Activation::kMufu).find("powf("), std::string::npos);
  // x may be below 0, and 0 to the power of 0 is 1.
  for (const char* score : {"pow(x, head)", "pow(abs(x), head)", "pow(x, 40)"})
    EXPECT_NE(print(score, kScore, Activation::kMufu).find("powf("), std::string::npos) << score;
  for (const char* score : {"pow(x, 10)", "pow(x, -2)", "pow(x, 2.5)", "x * pow(1.0 + abs(row - col), -0.5)"}) {
    for (const llvm::StringLiteral function : {kScore, kScoreGrad})
      EXPECT_EQ(print(score, function, Activation::kMufu).find("powf("), std::string::npos) << score;
  }
}

// A kernel converts the distance once for the pairs of a thread; every other difference once for each pair.
TEST(RegionPrinter, DistancesAreReadFromThePair) {
  const auto print = [](const char* score) {
    HstuAttentionParams params = attention_params();
    params.score = score;
    Regions regions = build_regions(params);
    return print_region(regions.function(kScoreGrad), Activation::kMufu).value();
  };
  for (const char* score :
       {"silu(x - (row - col) * 0.25)", "x * exp(-0.01 * abs(col - row))", "x + 0.5 * (col - row)"}) {
    EXPECT_NE(print(score).find("pair_distance(pair)"), std::string::npos) << print(score);
    EXPECT_EQ(print(score).find("static_cast<float>"), std::string::npos) << print(score);
  }
  for (const char* score : {"x + 0.5 * (row - n)", "x + 0.5 * (row - 2 * col)"})
    EXPECT_EQ(print(score).find("pair_distance"), std::string::npos) << print(score);
}

// A function within the choice would be a branch for each pair, with which ptxas overlaps no wgmma.
TEST(RegionPrinter, WhatAScoreChoosesIsComputedBefore) {
  for (const char* score :
       {"silu(x / alpha)", "silu(x) * exp(-0.01 * abs(row - col))", "where(row - col < 64, gelu(x), hardswish(x))"}) {
    HstuAttentionParams params = attention_params();
    params.score = score;
    Regions regions = build_regions(params);
    for (const llvm::StringLiteral function : {kScore, kScoreGrad}) {
      const auto printed = print_region(regions.function(function), Activation::kMufu);
      ASSERT_TRUE(printed.ok()) << printed.status().message();
      EXPECT_NE(printed->find(" ? "), std::string::npos) << *printed;
      for (size_t at = printed->find(" ? "); at != std::string::npos; at = printed->find(" ? ", at + 1)) {
        const std::string choice = printed->substr(at, printed->find(';', at) - at);
        EXPECT_EQ(choice.find('('), std::string::npos) << choice << " in " << *printed;
      }
    }
  }
}

// tanh(x / 2) takes x where it has to be precise and nobody else has the half.
TEST(RegionPrinter, PreciseTanhOfAHalfTakesTheWhole) {
  const auto print = [](std::string_view result) {
    const auto context = make_context();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        fmt::format("func.func @f(%x: f32) -> f32 {{\n %c = arith.constant 0.5 : f32\n %h = arith.mulf %x, %c : f32\n"
                    "%t = math.tanh %h : f32\n %s = arith.addf %t, %h : f32\n return %{} : f32\n}}",
                    result),
        context.get());
    mlir::func::FuncOp function = module->lookupSymbol<mlir::func::FuncOp>("f");
    llvm::DenseSet<mlir::Operation*> precise;
    function.walk([&](mlir::math::TanhOp tanh) { precise.insert(tanh); });
    if (result == "t") function.walk([](mlir::arith::AddFOp sum) { sum->erase(); });
    const auto printed = print_region(function, Activation::kMufu, precise);
    return printed.ok() ? *printed : printed.status().message();
  };
  EXPECT_NE(print("t").find("precise_tanh_of_half(a0)"), std::string::npos) << print("t");
  EXPECT_NE(print("s").find("precise_tanh("), std::string::npos) << print("s");
}

TEST(RegionPrinter, UnsupportedOperationIsNamed) {
  const auto context = make_context();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%x: f32) -> f32 {\n %y = math.cbrt %x : f32\n return %y : f32\n}", context.get());
  ASSERT_TRUE(module);
  const auto printed = print_region(module->lookupSymbol<mlir::func::FuncOp>("f"), Activation::kMufu);
  ASSERT_FALSE(printed.ok());
  EXPECT_EQ(printed.status().message(), "math.cbrt in f cannot be written in CUDA");
}

// As wide as what is compared: an index of rows has 64 bits.
TEST(RegionPrinter, UnsignedComparisonsLoseNoBits) {
  const auto context = make_context();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%x: index, %y: index) -> i1 {\n %z = arith.cmpi ult, %x, %y : index\n return %z : i1\n}",
      context.get());
  ASSERT_TRUE(module);
  const auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
  const auto of_row = print_row_index(function), of_pair = print_region(function, Activation::kMufu);
  ASSERT_TRUE(of_row.ok() && of_pair.ok());
  EXPECT_NE(of_row->find("return static_cast<u64>(a0) < static_cast<u64>(a1);"), std::string::npos) << *of_row;
  EXPECT_NE(of_pair->find("return static_cast<unsigned>(a0) < static_cast<unsigned>(a1);"), std::string::npos)
      << *of_pair;
}

TEST(Expression, ParenthesesOnlyWhereNeeded) {
  const CExpression a{"a"}, b{"b"}, c{"c"};
  const CExpression sum = binary(a, "+", b, Precedence::kSum, true);
  const CExpression difference = binary(a, "-", b, Precedence::kSum, false);
  const CExpression either = binary(a, "||", b, Precedence::kOr, true),
                    both = binary(a, "&&", b, Precedence::kAnd, true);
  EXPECT_EQ(binary(sum, "*", c, Precedence::kProduct, false).text, "(a + b) * c");
  EXPECT_EQ(binary(c, "+", difference, Precedence::kSum, true).text, "c + a - b");
  EXPECT_EQ(binary(c, "-", difference, Precedence::kSum, false).text, "c - (a - b)");
  EXPECT_EQ(binary(difference, "-", c, Precedence::kSum, false).text, "a - b - c");
  EXPECT_EQ(binary(both, "||", c, Precedence::kOr, true).text, "(a && b) || c");
  EXPECT_EQ(binary(either, "||", c, Precedence::kOr, true).text, "a || b || c");
  EXPECT_EQ(binary(either, "&&", c, Precedence::kAnd, true).text, "(a || b) && c");
  EXPECT_EQ(prefix("-", prefix("-", a)).text, "-(-a)");
  EXPECT_EQ(prefix("!", both).text, "!(a && b)");
  EXPECT_EQ(conditional(both, sum, conditional(c, a, b)).text, "a && b ? a + b : c ? a : b");
  EXPECT_EQ(binary(conditional(a, b, c), "+", c, Precedence::kSum, true).text, "(a ? b : c) + c");
}

TEST(Expression, FloatLiteralsAreExact) {
  EXPECT_EQ(float_literal(0.5f), "0.5f");
  EXPECT_EQ(float_literal(1.0f), "1.0f");
  EXPECT_EQ(float_literal(-2.0f), "-2.0f");
  EXPECT_EQ(float_literal(1e30f), "1e+30f");
  EXPECT_EQ(std::stof(float_literal(0.1f)), 0.1f);
  EXPECT_EQ(std::stof(float_literal(0.70710677f)), 0.70710677f);
  EXPECT_EQ(float_literal(std::numeric_limits<float>::infinity()), "__int_as_float(0x7f800000)");
}

TEST(Flatten, EachFileOnceAndCommonFirst) {
  const std::vector<EmbeddedTemplate> files = {
      {"common/a.cuh", "#pragma once\nint a;\n"},
      {"common/b.cuh", "#include \"common/a.cuh\"\nint b;\n"},
      {"op/entry.cuh", "#include \"op/part.cuh\"\n#include \"common/b.cuh\"\nint entry;\n"},
      {"op/part.cuh", "#include \"common/a.cuh\"\nint part;\n"}};
  const auto flat = flatten_template(files, "op/entry.cuh", {});
  ASSERT_TRUE(flat.ok()) << flat.status().message();
  EXPECT_EQ(flat->common, "// ----\nint a;\n\n// ----\nint b;\n\n");
  EXPECT_EQ(flat->own, "// ----\nint part;\n\n// ----\nint entry;\n\n");
}

// Text that an instance does not name is not in its source.
TEST(Flatten, ConditionalIncludesAreThoseThatGeneratedTextNames) {
  const std::vector<EmbeddedTemplate> files = {
      {"op/entry.cuh", "#include \"op/part.cuh\"  // where Part\nint entry;\n"}, {"op/part.cuh", "int part;\n"}};
  const std::string with = "// ----\nint part;\n\n// ----\nint entry;\n\n", without = "// ----\nint entry;\n\n";
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {})->own, with);
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {}, "struct Part {};")->own, with);
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {}, "struct Parts {};")->own, without);
}

TEST(Flatten, LinesAreThoseOfTheInstance) {
  const std::string text = "int a;\n#ifdef kNumContexts\nint b;\n#else\nint c;\n#endif\nint d;\n";
  const std::vector<EmbeddedTemplate> files = {{"op/entry.cuh", text}};
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {})->own, "// ----\n" + text + "\n") << "for digests";
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {}, "int kNumContext;")->own,
            "// ----\nint a;\nint c;\nint d;\n\n");
  EXPECT_EQ(flatten_template(files, "op/entry.cuh", {}, "int kNumContexts = 1;")->own,
            "// ----\nint a;\nint b;\nint d;\n\n");
}

TEST(Flatten, ForeignIncludeFails) {
  const auto flat = flatten_template({{"op/entry.cuh", "#include <cuda_bf16.h>\n"}}, "op/entry.cuh", {});
  ASSERT_FALSE(flat.ok());
  EXPECT_NE(flat.status().message().find("cuda_bf16.h"), std::string::npos) << flat.status().message();
}

}  // namespace
}  // namespace hstujit
