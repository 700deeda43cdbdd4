// hstu_attention on the host against the float64 reference of the spec, through the C boundary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/host/attention_cases.h"
#include "tests/host/host_call.h"
#include "tests/share.h"

namespace hstujit {
namespace {

// Runs the spec and compares; `seed` gives the inputs.
void expect_agreement(const Json& json, const Lengths& lengths = adversarial_lengths(), int64_t row_padding = 0) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, lengths, 7, row_padding);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostAttention, EveryMaskCombination) {
  for (const Json& changes : share_of(mask_combinations(), 0, 2)) expect_agreement(with(base_spec(), changes));
}

TEST(HostAttention, SemiLocalAndFullMasks) {
  for (const Json& changes : semi_local_and_full_masks()) expect_agreement(with(base_spec(), changes));
}

TEST(HostAttention, EveryScore) {
  for (const char* score : {"silu", "relu", "relu2", "sigmoid", "tanh", "gelu", "identity"}) {
    expect_agreement(with(base_spec(), {{"score", score}, {"num_targets", true}}));
  }
}

TEST(HostAttention, HeadsWithSoftmax) {
  // The other head is one without softmax.
  for (const Json& changes : share_of(mask_combinations(), 1, 2)) {
    expect_agreement(with(with(base_spec(), changes), {{"num_softmax_heads", 1}}));
  }
  for (const Json& changes : share_of(semi_local_and_full_masks(), 1, 2)) {
    expect_agreement(with(with(base_spec(), changes), {{"num_softmax_heads", 2}}));
  }
  expect_agreement(with(base_spec(), {{"num_softmax_heads", 1}, {"mask", "col < row and row - col > 40"}}));
  for (const char* dtype : {"bf16", "fp16"}) {
    Json json = with(base_spec(), {{"dtype", dtype}, {"num_softmax_heads", 2}, {"attn_dim", 40}, {"hidden_dim", 136}});
    json.erase("precision");
    expect_agreement(json, adversarial_lengths(), 16);
  }
}

// S of hundreds, whose powers alone would be infinite.
TEST(HostAttention, SoftmaxOfLargeScores) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"num_softmax_heads", 2}}));
  const HostHandle handle(*spec, 2);
  for (const double alpha : {40.0, -40.0, 0.0}) {
    HostCall call(spec, adversarial_lengths(), 5);
    call.inputs()[static_cast<size_t>(find_argument(spec->signature(Direction::kForward), "alpha"))].scalar = alpha;
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "") << alpha;
  }
}

TEST(HostAttention, EveryTypeAndHeadDimension) {
  const std::vector<std::pair<int, int>> dimensions = {{8, 8},     {64, 64},  {40, 96}, {128, 24},
                                                       {256, 256}, {16, 136}, {25, 25}, {50, 1}};
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const auto& [attn_dim, hidden_dim] : dimensions) {
      Json changes = {{"dtype", dtype}, {"attn_dim", attn_dim}, {"hidden_dim", hidden_dim}, {"heads", 1}};
      Json json = with(base_spec(), changes);
      if (changes["dtype"] != "fp32") json.erase("precision");
      expect_agreement(json);
    }
  }
}

TEST(HostAttention, StridedInputsAndShortOffsets) {
  for (const char* offsets : {"int32", "int64"}) {
    expect_agreement(with(base_spec(), {{"offsets_dtype", offsets}, {"num_targets", true}}), adversarial_lengths(), 48);
  }
}

TEST(HostAttention, ScalingSeqlenReplacesMaxSeqLen) {
  const OpSpecPtr spec = make_spec(base_spec());
  const HostHandle handle(*spec, 1);
  const Lengths lengths{.rows = {70}, .num_targets = {}, .max_seq_len = 100};
  HostCall call(spec, lengths, 3);
  const int scaling = find_argument(spec->signature(Direction::kForward), "scaling_seqlen");
  call.inputs()[static_cast<size_t>(scaling)].scalar = 10;
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostAttention, ThreadsDoNotChangeOneBit) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"num_targets", true}}));
  const HostHandle one(*spec, 1), four(*spec, 4);
  HostCall a(spec, adversarial_lengths(), 5), b(spec, adversarial_lengths(), 5);
  ASSERT_EQ(a.launch(one), 0) << a.error();
  ASSERT_EQ(b.launch(four), 0) << b.error();
  EXPECT_EQ(a.bytes("out"), b.bytes("out"));
}

// A NaN in one row of k is seen by that row and those behind it, whatever the score: as in PyTorch, relu of NaN is NaN.
TEST(HostAttention, EveryScoreKeepsNan) {
  constexpr size_t kRow = 2 * 32, kBad = 11;
  const Lengths lengths{.rows = {30}, .num_targets = {}, .max_seq_len = 30};
  for (const char* score : {"identity", "silu", "sigmoid", "relu", "relu2", "tanh", "gelu"}) {
    const OpSpecPtr spec = make_spec(with(base_spec(), {{"score", score}, {"causal", true}}));
    for (const char* dirty : {"q", "k"}) {
      const HostHandle handle(*spec, 2);
      HostCall call(spec, lengths, 5);
      std::vector<double>& reals = call.inputs()[*dirty == 'q' ? 0 : 1].tensor.reals;
      std::fill_n(reals.begin() + kBad * kRow, kRow, std::numeric_limits<double>::quiet_NaN());
      ASSERT_EQ(call.launch(handle), 0) << call.error();
      const HostTensor out = call.read("out");
      for (size_t i = 0; i < out.reals.size(); ++i) {
        const size_t row = i / kRow;
        ASSERT_EQ(std::isnan(out.reals[i]), *dirty == 'q' ? row == kBad : row >= kBad) << score << " " << dirty << i;
      }
      std::vector<HostValue> expected = call.inputs();
      spec->reference(Direction::kForward, lengths, expected);
      const std::vector<double>& reference = expected.back().tensor.reals;
      for (size_t i = 0; i < out.reals.size(); ++i)
        ASSERT_EQ(std::isnan(out.reals[i]), std::isnan(reference[i])) << score << " " << dirty << i;
    }
  }
}

TEST(HostAttention, NanStaysInItsSequence) {
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    Json json = with(base_spec(), {{"dtype", dtype}});
    if (json["dtype"] != "fp32") json.erase("precision");
    const OpSpecPtr spec = make_spec(json);
    const HostHandle handle(*spec, 2);
    const Lengths lengths{.rows = {20, 45, 0, 7}, .num_targets = {}, .max_seq_len = 64};
    HostCall clean(spec, lengths, 5), dirty(spec, lengths, 5);
    const size_t row = 2 * 32;
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      std::vector<double>& reals = dirty.inputs()[tensor].tensor.reals;
      std::fill(reals.begin() + 20 * row, reals.begin() + 65 * row, std::numeric_limits<double>::quiet_NaN());
    }
    ASSERT_EQ(clean.launch(handle), 0) << clean.error();
    ASSERT_EQ(dirty.launch(handle), 0) << dirty.error();
    const HostTensor a = clean.read("out"), b = dirty.read("out");
    for (size_t i = 0; i < a.reals.size(); ++i) {
      if (i >= 20 * row && i < 65 * row) {
        ASSERT_TRUE(std::isnan(b.reals[i])) << i;
      } else {
        ASSERT_EQ(a.reals[i], b.reals[i]) << i;
      }
    }
  }
}

TEST(HostAttention, RowsOfNoSequenceAndGapsBetweenRowsAreNotWritten) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"heads", 1}}));
  const HostHandle handle(*spec, 2);
  const Lengths lengths{.rows = {3, 300}, .num_targets = {}, .max_seq_len = 300};
  HostCall call(spec, lengths, 5, /*row_padding=*/16);
  call.add_rows(37);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const auto& bytes = call.bytes("out");
  const size_t row = (32 + 16) * sizeof(float);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i / row >= 303 || i % row >= 32 * sizeof(float)) {
      ASSERT_EQ(bytes[i], HostCall::kUntouched) << i;
    }
  }
}

TEST(HostAttention, EmptyBatches) {
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{}, std::vector<int64_t>{0, 0}}) {
    const OpSpecPtr spec = make_spec(base_spec());
    const HostHandle handle(*spec, 2);
    HostCall call(spec, {.rows = rows, .num_targets = {}, .max_seq_len = 8}, 5);
    EXPECT_EQ(call.launch(handle), 0) << call.error();
  }
}

// A window makes the cost linear: 2^17 rows would take minutes if every pair were visited.
TEST(HostAttention, WindowedLongSequence) {
  const Json json = with(base_spec(), {{"heads", 1}, {"attn_dim", 8}, {"hidden_dim", 8}, {"max_attn_len", 16}});
  expect_agreement(json, {.rows = {1 << 14}, .num_targets = {}, .max_seq_len = 1 << 14});
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2);
  HostCall call(spec, {.rows = {1 << 17}, .num_targets = {}, .max_seq_len = 1 << 17}, 5);
  EXPECT_EQ(call.launch(handle), 0) << call.error();
}

}  // namespace
}  // namespace hstujit
