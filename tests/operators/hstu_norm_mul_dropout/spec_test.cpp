// Parameters of hstu_norm_mul_dropout: rules, canonical form, signatures.
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hstujit {
namespace {

Result<OpSpecPtr> parse(const std::string& parameters) {
  return parse_op_spec(Json::parse(R"({"op": "hstu_norm_mul_dropout", "width": 64)" + parameters + "}"), "ops[0]");
}

std::string error_of(const std::string& parameters) {
  const auto spec = parse(parameters);
  return spec.ok() ? "" : spec.status().message();
}

std::string arguments_of(const std::string& parameters, Direction direction) {
  std::string text;
  for (const Argument& argument : (*parse(parameters))->signature(direction)) {
    text += (text.empty() ? "" : ", ") + argument.name;
    if (argument.kind == ArgumentKind::kTensor) text += shape_text(argument);
    if (argument.semantic != Semantic::kData) text += " " + std::string(to_string(argument.semantic));
  }
  return text;
}

TEST(HstuNormMulDropoutSpec, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(R"(, "group_norm": true, "heads": 3)"),
            "ops[0].heads is 3, but width is 64; allowed: a divisor of it");
  EXPECT_EQ(error_of(R"(, "group_norm": true, "silu_u": true, "mul_u_activation": "sigmoid")"),
            "ops[0].mul_u_activation is \"sigmoid\", but with group_norm silu_u is for the u that multiplies, too; "
            "allowed: \"none\" or \"silu\", which mean the same");
  EXPECT_EQ(error_of(R"(, "heads": 3)"), "");
}

TEST(HstuNormMulDropoutSpec, EqualMeaningsHaveOneForm) {
  const auto key = [](const std::string& parameters) { return key_text(**parse(parameters)); };
  EXPECT_EQ(key(R"(, "heads": 4)"), key(""));
  EXPECT_EQ(key(R"(, "silu_u": true)"), key(""));
  EXPECT_EQ(key(R"(, "group_norm": true, "silu_u": true)"), key(R"(, "group_norm": true, "mul_u_activation": "silu")"));
  EXPECT_EQ(key(R"(, "group_norm": true, "silu_u": true, "concat_u": true)"),
            key(R"(, "group_norm": true, "silu_u": true, "concat_u": true, "mul_u_activation": "silu")"));
  EXPECT_NE(key(R"(, "silu_u": true, "concat_u": true)"), key(R"(, "concat_u": true)"));
  EXPECT_EQ(key(R"(, "seed_tensor": true)"), key(""));
  EXPECT_NE(key(R"(, "dropout": true, "seed_tensor": true)"), key(R"(, "dropout": true)"));
  EXPECT_EQ(key(R"(, "row_numbers": true)"), key(""));
  EXPECT_NE(key(R"(, "dropout": true, "row_numbers": true)"), key(R"(, "dropout": true)"));
}

TEST(HstuNormMulDropoutSpec, Signatures) {
  EXPECT_EQ(arguments_of("", Direction::kForward), "x(L, 64), u(L, 64), weight(64), bias(64), eps, out(L, 64)");
  EXPECT_EQ(arguments_of(R"(, "norm": "rms_norm")", Direction::kBackward),
            "x(L, 64), u(L, 64), dout(L, 64), weight(64), eps, dx(L, 64), du(L, 64), dweight(64)");
  const std::string all = R"(, "group_norm": true, "heads": 4, "concat_u": true, "concat_x": true, "dropout": true)";
  EXPECT_EQ(arguments_of(all, Direction::kForward),
            "x(L, 64), u(L, 64), weight(4), bias(4), eps, dropout_ratio, seed seed, offset seed, out(L, 192)");
  EXPECT_EQ(arguments_of(all, Direction::kBackward),
            "x(L, 64), u(L, 64), dout(L, 192), weight(4), bias(4), eps, dropout_ratio, seed seed, offset seed, "
            "dx(L, 64), du(L, 64), dweight(4), dbias(4)");
  EXPECT_EQ(arguments_of(R"(, "norm": "rms_norm", "dropout": true, "seed_tensor": true)", Direction::kForward),
            "x(L, 64), u(L, 64), weight(64), eps, dropout_ratio, seed_tensor(1) seed, offset seed, out(L, 64)");
  EXPECT_EQ(arguments_of(R"(, "norm": "rms_norm", "dropout": true, "seed_tensor": true)", Direction::kBackward),
            "x(L, 64), u(L, 64), dout(L, 64), weight(64), eps, dropout_ratio, seed_tensor(1) seed, offset seed, "
            "dx(L, 64), du(L, 64), dweight(64)");
  const std::string numbered = R"(, "norm": "rms_norm", "dropout": true, "row_numbers": true)";
  EXPECT_EQ(arguments_of(numbered, Direction::kForward),
            "x(L, 64), u(L, 64), weight(64), eps, dropout_ratio, seed seed, offset seed, row_numbers(L) seed, "
            "out(L, 64)");
  EXPECT_EQ(
      arguments_of(numbered, Direction::kBackward),
      "x(L, 64), u(L, 64), dout(L, 64), weight(64), eps, dropout_ratio, seed seed, offset seed, row_numbers(L) seed, "
      "dx(L, 64), du(L, 64), dweight(64)");
}

TEST(HstuNormMulDropoutSpec, ASeedInATensorIsTunedAsANumber) {
  const auto alike = (*parse(R"(, "dropout": true, "seed_tensor": true)"))->tuned_alike();
  ASSERT_EQ(alike.size(), 1);
  EXPECT_EQ(key_text(*alike[0].spec), key_text(**parse(R"(, "dropout": true)")));
  EXPECT_TRUE((*parse(R"(, "dropout": true)"))->tuned_alike().empty());
  const auto numbered = (*parse(R"(, "dropout": true, "row_numbers": true)"))->tuned_alike();
  ASSERT_EQ(numbered.size(), 1);
  EXPECT_EQ(key_text(*numbered[0].spec), key_text(**parse(R"(, "dropout": true)")));
}

TEST(HstuNormMulDropoutSpec, WorkCountsBytesOnce) {
  const Lengths lengths{{3, 7}, {}, 7, {}};
  const auto spec = parse(R"(, "group_norm": true, "heads": 4, "concat_u": true, "concat_x": true)");
  EXPECT_EQ((*spec)->work(Direction::kForward, lengths).bytes, (2 + 3) * 10 * 64 * 2 + 2 * 4 * 4);
  EXPECT_EQ((*spec)->work(Direction::kBackward, lengths).bytes, (2 + 3 + 2) * 10 * 64 * 2 + 4 * 4 * 4);
  const auto bytes = [&](const std::string& parameters) {
    return (*parse(R"(, "dropout": true)" + parameters))->work(Direction::kForward, lengths).bytes;
  };
  EXPECT_EQ(bytes(R"(, "row_numbers": true)") - bytes(""), 10 * 8);
}

}  // namespace
}  // namespace hstujit
