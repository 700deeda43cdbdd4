// `struct Spec` of generated source: every kind of parameter keeps its value.
#include "compiler/emit/constants.h"

#include <gtest/gtest.h>

#include "compiler/emit/expression.h"
#include "compiler/support/json.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

TEST(PrintSpec, EveryKindOfParameter) {
  const Json values = {{"op", "norm"},    {"width", 64}, {"affine", true}, {"eps", 1e-5},
                       {"momentum", 1.0}, {"tiny", 0.1}, {"shift", -3},    {"mode", "two words"}};
  const Json schema = {{"properties", {{"mode", {{"enum", {"one", "two words"}}}}}}};
  const auto text =
      print_spec(values, schema, std::nullopt, {}, "kWidth kAffine kEps kMomentum kTiny kShift kModeOne kModeTwoWords");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text,
            "struct Spec {\n"
            "  static constexpr int kWidth = 64;\n"
            "  static constexpr int kAffine = 1;\n"
            "  static constexpr double kEps = 1e-05;\n"
            "  static constexpr double kMomentum = 1.0;\n"
            "  static constexpr double kTiny = 0.1;\n"
            "  static constexpr int kShift = -3;\n"
            "  static constexpr bool kModeOne = false;\n"
            "  static constexpr bool kModeTwoWords = true;\n"
            "};\n");
}

TEST(PrintSpec, WhatTheKernelDoesNotNameIsLeftOut) {
  const Json values = {{"width", 64}, {"rows", int64_t{1} << 31}, {"mode", "one"}};
  const Json schema = {{"properties", {{"mode", {{"enum", {"one", "two"}}}}}}};
  const auto text = print_spec(values, schema, false, "  struct Bias {};\n", "Spec::kModeTwo + Spec::kWidths");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text,
            "struct Spec {\n"
            "  static constexpr bool kModeTwo = false;\n"
            "  struct Bias {};\n"
            "};\n");
}

TEST(PrintSpec, MaskTrivialOnlyForOperatorsWithAMask) {
  const auto printed = [](std::optional<bool> mask_trivial) {
    return *print_spec({{"width", 8}}, {}, mask_trivial, {}, "Spec::kMaskTrivial");
  };
  EXPECT_NE(printed(false).find("kMaskTrivial = false"), std::string::npos);
  EXPECT_NE(printed(true).find("kMaskTrivial = true"), std::string::npos);
  EXPECT_EQ(printed(std::nullopt).find("kMaskTrivial"), std::string::npos);
}

TEST(PrintSpec, WhatItCannotHoldIsNamed) {
  const auto large = print_spec({{"rows", int64_t{1} << 31}}, {}, std::nullopt, {}, "kRows");
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), Code::kUnsupported);
  EXPECT_EQ(large.status().message(),
            "parameter rows is 2147483648; generated source holds integers from -2147483648 to 2147483647");
  const auto list = print_spec({{"shape", Json::array({1, 2})}}, {}, std::nullopt, {}, "kShape");
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.status().message(),
            "parameter shape is a JSON array; generated source holds integers, numbers, booleans and texts");
}

TEST(PrintConfig, DerivedConstantsThatTheKernelNames) {
  const KernelConfig config{"attention/sm90_forward", AttentionConfig{}};
  EXPECT_EQ(print_config(config, {{"shared_bytes", 64}, {"split", 1}}, "Config::kSplit"),
            "struct Config {\n"
            "  static constexpr int kSplit = 1;\n"
            "};\n");
}

TEST(DoubleLiteral, ReadsBackExactly) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, -2.5, 1e30, 0.0}) EXPECT_EQ(std::stod(double_literal(value)), value);
  EXPECT_EQ(double_literal(2), "2.0");
}

}  // namespace
}  // namespace hstujit
