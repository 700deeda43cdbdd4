#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/rounding.h"
#include "compiler/support/text.h"
#include "tests/spec/attention_slopes.h"

namespace hstujit {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

// Inputs of one head of 8 and 8 columns, of which only the first of q, k and v is not zero.
std::vector<HostValue> tiny_inputs(const HstuAttentionSpec& spec, const Lengths& lengths, const std::vector<double>& q,
                                   const std::vector<double>& k, const std::vector<double>& v) {
  auto values = spec.make_inputs(Direction::kForward, lengths, 1);
  const std::vector<double>* columns[] = {&q, &k, &v};
  for (size_t argument = 0; argument < 3; ++argument) {
    auto& reals = values[argument].tensor.reals;
    std::fill(reals.begin(), reals.end(), 0.0);
    for (size_t row = 0; row < columns[argument]->size(); ++row) reals[8 * row] = (*columns[argument])[row];
  }
  return values;
}

TEST(HstuAttentionReference, TwoSequencesByHand) {
  const HstuAttentionSpec spec({.heads = 1, .attn_dim = 8, .hidden_dim = 8});
  const Lengths lengths{{2, 0, 1}, {}, 4};
  auto values = tiny_inputs(spec, lengths, {1, 2, 3}, {0.5, -1, 2}, {1, 10, 100});
  argument(spec, values, "alpha").scalar = 0.5;
  spec.reference(Direction::kForward, lengths, values);
  const HostTensor& out = argument(spec, values, "out").tensor;
  EXPECT_EQ(out.shape, (std::vector<int64_t>{3, 1, 8}));
  EXPECT_NEAR(out.reals[0], silu(0.5 * 1 * 0.5) / 4, 1e-15);
  EXPECT_NEAR(out.reals[8], (silu(0.5 * 2 * 0.5) * 1 + silu(0.5 * 2 * -1) * 10) / 4, 1e-15);
  EXPECT_NEAR(out.reals[16], silu(0.5 * 3 * 2) * 100 / 4, 1e-12);
  EXPECT_EQ(out.reals[1], 0);
}

TEST(HstuAttentionReference, ScalingReplacesMaxSeqLen) {
  const HstuAttentionSpec spec({.heads = 1, .attn_dim = 8, .hidden_dim = 8});
  const Lengths lengths{{1}, {}, 4};
  auto values = tiny_inputs(spec, lengths, {2}, {3}, {5});
  argument(spec, values, "alpha").scalar = 1;
  argument(spec, values, "scaling_seqlen").scalar = 10;
  spec.reference(Direction::kForward, lengths, values);
  EXPECT_NEAR(argument(spec, values, "out").tensor.reals[0], silu(6) * 5 / 10, 1e-14);
}

TEST(HstuAttentionReference, EveryScore) {
  const double x = -1.5;
  const std::pair<const char*, double> scores[] = {
      {"silu", silu(x)},      {"relu", 0},
      {"relu2", 0},           {"sigmoid", 1 / (1 + std::exp(-x))},
      {"tanh", std::tanh(x)}, {"gelu", 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))},
      {"identity", x}};
  EXPECT_EQ(std::size(scores), split(kHstuScores, ' ').size());
  for (const auto& [score, expected] : scores) {
    const HstuAttentionSpec spec({.heads = 1, .attn_dim = 8, .hidden_dim = 8, .score = score});
    const Lengths lengths{{1}, {}, 1};
    auto values = tiny_inputs(spec, lengths, {x}, {1}, {1});
    argument(spec, values, "alpha").scalar = 1;
    spec.reference(Direction::kForward, lengths, values);
    EXPECT_NEAR(argument(spec, values, "out").tensor.reals[0], expected, 1e-14) << score;
  }
}

TEST(HstuAttentionReference, TargetsComeFromTheirTensor) {
  const HstuAttentionSpec spec({.heads = 1, .attn_dim = 8, .hidden_dim = 8, .num_targets = true, .score = "identity"});
  const Lengths lengths{{3}, {2}, 1};
  auto values = tiny_inputs(spec, lengths, {1, 1, 1}, {1, 1, 1}, {1, 10, 100});
  argument(spec, values, "alpha").scalar = 1;
  spec.reference(Direction::kForward, lengths, values);
  const auto& out = argument(spec, values, "out").tensor.reals;
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[8], 11);
  EXPECT_EQ(out[16], 101);
}

HstuAttentionParams small_params() {
  return {.heads = 2,
          .attn_dim = 8,
          .hidden_dim = 16,
          .dtype = DataType::kFp32,
          .num_targets = true,
          .contextual_seq_len = 2};
}

TEST(HstuAttentionReference, GradientsAreTheSlopesOfTheForwardReference) {
  expect_slopes<HstuAttentionSpec>(small_params(), {{7, 0, 1, 5}, {3, 0, 1, 0}, 8});
}

// A row of history, one in context and targets: differences of every element of a bias take long.
const Lengths kFewRows{{5, 0, 1}, {2, 0, 1}, 6};

TEST(HstuAttentionReference, GradientsOfABiasOfAllHeadsAndOfAFactorForEachRow) {
  HstuAttentionParams params = small_params();
  params.rab_heads = 1;
  params.attn_scale = "rows";
  expect_slopes<HstuAttentionSpec>(params, kFewRows);
}

TEST(HstuAttentionReference, GradientsOfABiasOfEachHeadAndOfOneFactor) {
  HstuAttentionParams params = small_params();
  params.rab_heads = 2;
  params.attn_scale = "scalar";
  expect_slopes<HstuAttentionSpec>(params, kFewRows);
}

TEST(HstuAttentionReference, GradientsOfHeadsWithSoftmax) {
  HstuAttentionParams params = small_params();
  params.num_softmax_heads = 1;
  expect_slopes<HstuAttentionSpec>(params, {{7, 0, 1, 5}, {3, 0, 1, 0}, 8});
  params.rab_heads = 1;
  params.attn_scale = "rows";
  expect_slopes<HstuAttentionSpec>(params, kFewRows);
}

// Four heads, two of which share each head of the bias, which is 100 b + 10 h' + 2 i + j: with q = 0, alpha = 1 and the
// score identity it is what out is the sum of.
TEST(HstuAttentionReference, ABiasByHand) {
  const HstuAttentionSpec spec(
      {.heads = 4, .attn_dim = 8, .hidden_dim = 8, .score = "identity", .rab_heads = 2, .attn_scale = "rows"});
  const Lengths lengths{{1, 2}, {}, 2};
  auto values = spec.make_inputs(Direction::kForward, lengths, 1);
  for (const char* name : {"q", "v"}) {
    auto& reals = argument(spec, values, name).tensor.reals;
    std::fill(reals.begin(), reals.end(), name[0] == 'q' ? 0.0 : 1.0);
  }
  auto& bias = argument(spec, values, "rab").tensor;
  EXPECT_EQ(bias.shape, (std::vector<int64_t>{2, 2, 2, 2}));
  for (size_t i = 0; i < 16; ++i) {
    bias.reals[i] = static_cast<double>(100 * (i >> 3) + 10 * (i >> 2 & 1) + 2 * (i >> 1 & 1) + (i & 1));
  }
  argument(spec, values, "attn_scale").tensor.reals = {1, -1, 2};
  argument(spec, values, "alpha").scalar = 1;
  argument(spec, values, "scaling_seqlen").scalar = 1000;  // attn_scale replaces it
  spec.reference(Direction::kForward, lengths, values);
  const auto& out = argument(spec, values, "out").tensor.reals;
  const auto at = [&](size_t row, size_t head) { return out[(row * 4 + head) * 8]; };
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_EQ(at(0, 1), 0);
  EXPECT_EQ(at(0, 2), 10);
  EXPECT_EQ(at(0, 3), 10);
  EXPECT_EQ(at(1, 0), -100);
  EXPECT_EQ(at(1, 3), -110);
  EXPECT_EQ(at(2, 1), 2 * (102 + 103));
  EXPECT_EQ(at(2, 2), 2 * (112 + 113));
}

TEST(HstuAttentionReference, TheGradientOfTheBiasIsZeroWhereNoPairIs) {
  const HstuAttentionSpec spec({.heads = 2, .attn_dim = 8, .hidden_dim = 8, .rab_heads = 1});
  const Lengths lengths{{3, 0}, {}, 4};
  auto values = spec.make_inputs(Direction::kBackward, lengths, 1);
  spec.reference(Direction::kBackward, lengths, values);
  const HostTensor& drab = argument(spec, values, "drab", Direction::kBackward).tensor;
  EXPECT_EQ(drab.shape, (std::vector<int64_t>{2, 1, 4, 4}));
  ASSERT_EQ(drab.reals.size(), 32U);
  for (size_t i = 0; i < drab.reals.size(); ++i) {
    const size_t row = i / 4 % 4, column = i % 4;
    EXPECT_EQ(drab.reals[i] != 0, i < 16 && row < 3 && column <= row) << i;
  }
}

TEST(HstuAttentionInputs, BiasesAndFactorsKeepTheOutputsSize) {
  for (const DataType type : {DataType::kBf16, DataType::kFp16, DataType::kFp32}) {
    const HstuAttentionSpec spec(
        {.heads = 2, .attn_dim = 64, .hidden_dim = 32, .dtype = type, .rab_heads = 2, .attn_scale = "rows"});
    const Lengths lengths{{40, 0, 9}, {}, 64};
    auto values = spec.make_inputs(Direction::kForward, lengths, 7);
    double square = 0;
    const auto& bias = argument(spec, values, "rab").tensor.reals;
    for (const double value : bias) {
      ASSERT_EQ(value, round_to(type, value));
      square += value * value;
    }
    EXPECT_NEAR(std::sqrt(square / static_cast<double>(bias.size())) / 64, 0.5, 0.02);
    int negative = 0;
    for (const double value : argument(spec, values, "attn_scale").tensor.reals) {
      ASSERT_EQ(value, static_cast<float>(value));
      ASSERT_GE(std::abs(value), 0.999 / 64);
      ASSERT_LE(std::abs(value), 3.001 / 64);
      negative += value < 0 ? 1 : 0;
    }
    EXPECT_TRUE(negative > 5 && negative < 44) << negative;
    spec.reference(Direction::kForward, lengths, values);
    const auto& out = values.back().tensor.reals;
    EXPECT_GT(std::sqrt(std::inner_product(out.begin(), out.end(), out.begin(), 0.0) / static_cast<double>(out.size())),
              1e-2);
  }
}

TEST(HstuAttentionInputs, BackwardHasTheForwardInputsAndAGradientOfTheirOwn) {
  const HstuAttentionSpec spec({.heads = 2, .attn_dim = 16, .hidden_dim = 24, .dtype = DataType::kFp16});
  const Lengths lengths{{40, 0, 9}, {}, 64};
  auto forward = spec.make_inputs(Direction::kForward, lengths, 7);
  auto backward = spec.make_inputs(Direction::kBackward, lengths, 7);
  ASSERT_EQ(backward.size(), spec.signature(Direction::kBackward).size());
  for (const char* name : {"q", "k", "v"}) {
    EXPECT_EQ(argument(spec, backward, name, Direction::kBackward).tensor.reals,
              argument(spec, forward, name).tensor.reals);
  }
  const HostTensor& dout = argument(spec, backward, "dout", Direction::kBackward).tensor;
  EXPECT_EQ(dout.shape, (std::vector<int64_t>{49, 2, 24}));
  EXPECT_NE(dout.reals, argument(spec, forward, "v").tensor.reals);
  for (const double value : dout.reals) ASSERT_EQ(value, round_to(DataType::kFp16, value));
}

TEST(HstuAttentionInputs, DotProductsOfABackwardReluAreExactInFp32) {
  for (const DataType type : {DataType::kBf16, DataType::kFp16, DataType::kFp32}) {
    const HstuAttentionSpec spec(
        {.heads = 1, .attn_dim = 256, .hidden_dim = 8, .dtype = type, .score = "relu", .rab_heads = 1});
    auto values = spec.make_inputs(Direction::kBackward, {{64}, {}, 64}, 7);
    const auto& bias = argument(spec, values, "rab", Direction::kBackward).tensor.reals;
    const auto &q = values[0].tensor.reals, &k = values[1].tensor.reals;
    for (const double value : q) ASSERT_EQ(value, round_to(type, value));
    for (size_t i = 0; i < 64; ++i) {
      for (size_t j = 0; j < 64; ++j) {
        double exact = bias[64 * i + j];
        auto rounded = static_cast<float>(bias[64 * i + j]);
        for (size_t d = 0; d < 256; ++d) {
          exact += q[256 * i + d] * k[256 * j + d];
          rounded += static_cast<float>(q[256 * i + d]) * static_cast<float>(k[256 * j + d]);
        }
        ASSERT_EQ(exact, rounded);
      }
    }
  }
}

TEST(HstuAttentionInputs, RoundedDeterministicAndNotVanishing) {
  const HstuAttentionSpec spec(
      {.heads = 2, .attn_dim = 16, .hidden_dim = 24, .dtype = DataType::kFp16, .num_targets = true});
  const Lengths lengths{{40, 0, 9}, {3, 0, 9}, 64};
  auto values = spec.make_inputs(Direction::kForward, lengths, 7);
  const auto again = spec.make_inputs(Direction::kForward, lengths, 7),
             other = spec.make_inputs(Direction::kForward, lengths, 8);
  ASSERT_EQ(values.size(), spec.signature(Direction::kForward).size());
  EXPECT_EQ(values[0].tensor.reals, again[0].tensor.reals);
  EXPECT_NE(values[0].tensor.reals, other[0].tensor.reals);
  EXPECT_NE(values[0].tensor.reals, values[1].tensor.reals);
  EXPECT_EQ(values[3].tensor.integers, (std::vector<int64_t>{0, 40, 40, 49}));
  EXPECT_EQ(values[4].tensor.integers, lengths.num_targets);
  for (const double value : values[2].tensor.reals) ASSERT_EQ(value, round_to(DataType::kFp16, value));
  spec.reference(Direction::kForward, lengths, values);
  double square = 0;
  for (const double value : values.back().tensor.reals) square += value * value;
  EXPECT_GT(std::sqrt(square / static_cast<double>(values.back().tensor.reals.size())), 1e-3);
}

}  // namespace
}  // namespace hstujit
