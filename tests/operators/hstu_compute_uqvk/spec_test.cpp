// hstu_compute_uqvk: what it takes, what its steps are, its reference, and what is refused.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/operators/program_steps.h"
#include "tests/operators/stu_layer/stu_gradient.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kUqvk = "hstu_compute_uqvk";

std::string uqvk_arguments(const OpSpec& spec, Direction direction) {
  std::string text;
  for (const Argument& argument : spec.signature(direction))
    text += argument.name + (argument.kind == ArgumentKind::kTensor ? shape_text(argument) : "") + " ";
  return text;
}

TEST(HstuComputeUqvk, TakesRowsAndWeights) {
  const OpSpecPtr spec = stu(kUqvk), kept = stu(kUqvk, {{"recompute_normed_x", false}, {"norm", "rms_norm"}});
  EXPECT_EQ(uqvk_arguments(*spec, Direction::kForward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) eps uvqk(L, 96) ");
  EXPECT_EQ(uqvk_arguments(*spec, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) duvqk(L, 96) eps "
            "duvqk_weight(24, 96) duvqk_bias(96) dx(L, 24) dinput_norm_weight(24) dinput_norm_bias(24) ");
  EXPECT_EQ(uqvk_arguments(*kept, Direction::kForward),
            "x(L, 24) input_norm_weight(24) uvqk_weight(24, 96) uvqk_bias(96) eps normed_x(L, 24) uvqk(L, 96) ");
  EXPECT_EQ(uqvk_arguments(*kept, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) uvqk_weight(24, 96) uvqk_bias(96) normed_x(L, 24) duvqk(L, 96) eps "
            "duvqk_weight(24, 96) duvqk_bias(96) dx(L, 24) dinput_norm_weight(24) ");
  EXPECT_FALSE(stu(kUqvk, {{"training", false}})->supports(Direction::kBackward));
}

TEST(HstuComputeUqvk, OneProductForwardAndColumnsOfUApartBackward) {
  const OpSpecPtr spec = stu(kUqvk);
  const Program& forward = *spec->program(Direction::kForward);
  EXPECT_THAT(steps_of(forward),
              ElementsAre("layer_norm forward: weight=input_norm_weight bias=input_norm_bias out=normed_x",
                          "addmm forward: input=uvqk_bias mat1=normed_x mat2=uvqk_weight alpha=1 beta=1 out=uvqk"));
  EXPECT_THAT(key_text(*forward.steps[1].spec), HasSubstr("\"silu_columns\":32"));
  EXPECT_THAT(
      steps_of(*spec->program(Direction::kBackward)),
      ElementsAre(
          "layer_norm forward: weight=input_norm_weight bias=input_norm_bias out=normed_x",
          "addmm_2 forward: input=uvqk_bias[0] mat1=normed_x mat2=uvqk_weight[0] alpha=1 beta=1 out=u",
          "silu backward: x=u dout=duvqk[0] dx=du",
          "addmm_3 forward: mat1=du mat2=uvqk_weight[0] alpha=1 out=dnormed_x_of_u",
          "addmm_wgrad forward: mat1=normed_x dout=du alpha=1 beta=1 out=duvqk_weight[0] dbias=duvqk_bias[0]",
          "addmm_4 forward: input=dnormed_x_of_u mat1=duvqk[32] mat2=uvqk_weight[32] alpha=1 beta=1 out=dnormed_x",
          "addmm_wgrad_2 forward: mat1=normed_x dout=duvqk[32] alpha=1 beta=1 out=duvqk_weight[32] "
          "dbias=duvqk_bias[32]",
          "layer_norm backward: dout=dnormed_x weight=input_norm_weight dweight=dinput_norm_weight "
          "dbias=dinput_norm_bias"));
}

// With a weight that projects to ones and twos of one column: the norm of a row of 1 and -1 is that row. The first
// columns, so many, have silu.
void check_by_hand(const OpSpecPtr& spec, size_t activated) {
  const Signature signature = spec->signature(Direction::kForward);
  const Lengths lengths{{2}, {}, 2, {}};
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 3);
  const auto value = [&](std::string_view name) -> HostValue& {
    return values[static_cast<size_t>(find_argument(signature, name))];
  };
  const auto fill = [&](std::string_view name, const auto& element) {
    std::vector<double>& reals = value(name).tensor.reals;
    for (size_t i = 0; i < reals.size(); ++i) reals[i] = element(i);
  };
  fill("x", [](size_t i) { return i % 2 == 0 ? 1 : -1; });
  fill("input_norm_weight", [](size_t) { return 2; });
  fill("input_norm_bias", [](size_t) { return 1; });
  fill("uvqk_weight", [](size_t i) { return i / 96 == 0 ? static_cast<double>(i % 96) / 64 : 0; });
  fill("uvqk_bias", [](size_t i) { return i == 95 ? 8 : -1; });
  value("eps").scalar = 0;
  spec->reference(Direction::kForward, lengths, values);
  ASSERT_EQ(value("uvqk").tensor.shape, (std::vector<int64_t>{2, 96}));
  for (size_t i = 0; i < 2 * 96; ++i) {
    const auto column = static_cast<double>(i % 96);
    const double z = 3 * column / 64 + (i % 96 == 95 ? 8 : -1);
    EXPECT_DOUBLE_EQ(value("uvqk").tensor.reals[i], i % 96 < activated ? z / (1 + std::exp(-z)) : z) << i;
  }
}

TEST(HstuComputeUqvk, ReferenceByHand) {
  check_by_hand(stu(kUqvk), 32);
  check_by_hand(stu(kUqvk, {{"silu_uvqk", true}}), 96);
}

TEST(HstuComputeUqvk, GradientIsThatOfForward) {
  expect_gradients(stu(kUqvk, {{"dtype", "fp16"}}), 5);
  expect_gradients(stu(kUqvk, {{"dtype", "fp16"}, {"recompute_normed_x", false}, {"norm", "rms_norm"}}), 4);
  expect_gradients(stu(kUqvk, {{"dtype", "fp16"}, {"uvqk_bias", false}}), 4);
  expect_gradients(stu(kUqvk, {{"dtype", "fp16"}, {"silu_uvqk", true}}), 5);
}

TEST(HstuComputeUqvk, WritesItselfAndReadsIt) {
  const OpSpecPtr spec = stu(kUqvk, {{"uvqk_bias", false}, {"training", false}, {"typical_rows", 1000}});
  const auto again = parse_op_spec(Json::parse(key_text(*spec)), "");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->to_json(), spec->to_json());
}

TEST(HstuComputeUqvk, MistakesAreSentences) {
  const auto mistake = [](const Json& more) {
    return std::string(parse_op_spec(stu_json(kUqvk, more), "ops[0]").status().message());
  };
  EXPECT_THAT(mistake({{"dtype", "fp64"}}), HasSubstr("ops[0].dtype is \"fp64\"; allowed: bf16, fp16, fp32 "));
  EXPECT_THAT(mistake({{"hidden_dim", 257}}), HasSubstr("ops[0].hidden_dim is 257; allowed:"));
  EXPECT_EQ(mistake({{"weight_dtype", "fp16"}}),
            "ops[0].weight_dtype is fp16, but rows are bf16; allowed: fp32, or the type of rows");
  EXPECT_EQ(mistake({{"heads", 1024}, {"hidden_dim", 32}}),
            "ops[0].heads is 1024, so the projection has 81920 columns u, v, q and k; allowed: at most 65536");
  EXPECT_EQ(mistake({{"heads", 512}}), "");
  const Json wide = {{"heads", 100}, {"hidden_dim", 256}, {"attn_dim", 8}, {"uvqk_bias", false}};
  EXPECT_EQ(mistake(wide), "ops[0].heads is 100, so u has 25600 columns; allowed: at most 16384 with training");
  EXPECT_EQ(mistake({{"heads", 400}, {"silu_uvqk", true}}),
            "ops[0].heads is 400, so u, v, q and k have 19200 columns; allowed: at most 16384 with training");
  Json serving = wide;
  serving["training"] = false;
  EXPECT_EQ(mistake(serving), "");
}

}  // namespace
}  // namespace hstujit
