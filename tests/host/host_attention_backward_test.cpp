// hstu_attention backward on the host against the float64 reference of the spec, and against the host's own forward.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/support/text.h"
#include "tests/host/attention_cases.h"
#include "tests/host/host_call.h"
#include "tests/share.h"

namespace hstujit {
namespace {

constexpr const char* kGradients[] = {"dq", "dk", "dv"};

HostCall backward_call(const OpSpecPtr& spec, const Lengths& lengths, uint64_t seed, int64_t row_padding = 0) {
  return HostCall(spec, lengths, seed, row_padding, Direction::kBackward);
}

HostValue& value_of(const OpSpec& spec, std::vector<HostValue>& values, std::string_view name) {
  return values[static_cast<size_t>(find_argument(spec.signature(Direction::kBackward), name))];
}

void expect_agreement(const Json& json, const Lengths& lengths = adversarial_lengths(), int64_t row_padding = 0) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, Direction::kBackward);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call = backward_call(spec, lengths, 7, row_padding);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostAttentionBackward, EveryMaskCombination) {
  for (const Json& changes : share_of(mask_combinations(), 0, 2)) expect_agreement(with(base_spec(), changes));
}

TEST(HostAttentionBackward, SemiLocalAndFullMasks) {
  for (const Json& changes : semi_local_and_full_masks()) expect_agreement(with(base_spec(), changes));
}

TEST(HostAttentionBackward, EveryScore) {
  for (const std::string& score : split(kHstuScores, ' ')) {
    expect_agreement(with(base_spec(), {{"score", score}, {"num_targets", true}}));
  }
}

TEST(HostAttentionBackward, HeadsWithSoftmax) {
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

TEST(HostAttentionBackward, EveryTypeAndHeadDimension) {
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

TEST(HostAttentionBackward, LengthsAroundTheTilesEdges) {
  expect_agreement(
      with(base_spec(), {{"causal", false}, {"max_attn_len", 100}}),
      {.rows = {127, 128, 129, 251, 252, 253, 255, 256, 257, 511, 513}, .num_targets = {}, .max_seq_len = 600});
}

TEST(HostAttentionBackward, StridedInputsAndShortOffsets) {
  for (const char* offsets : {"int32", "int64"}) {
    expect_agreement(with(base_spec(), {{"offsets_dtype", offsets}, {"num_targets", true}}), adversarial_lengths(), 48);
  }
}

// The sum over out * dout of the host's forward, of which the gradients are the slopes.
double loss(const OpSpecPtr& spec, const Lengths& lengths, const HostHandle& forward,
            std::vector<HostValue>& backward) {
  HostCall call(spec, lengths, 7);
  const Signature arguments = spec->signature(Direction::kForward);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].role == ArgumentRole::kInput) call.inputs()[i] = value_of(*spec, backward, arguments[i].name);
  }
  EXPECT_EQ(call.launch(forward), 0) << call.error();
  const std::vector<double> out = call.read("out").reals;
  return std::inner_product(out.begin(), out.end(), value_of(*spec, backward, "dout").tensor.reals.begin(), 0.0);
}

TEST(HostAttentionBackward, GradientsAreTheSlopesOfTheHostsForward) {
  constexpr double kStep = 1.0 / 256;
  const Lengths lengths{.rows = {9, 0, 1, 20}, .num_targets = {3, 0, 1, 4}, .max_seq_len = 20};
  for (const std::string& score : split(kHstuScores, ' ')) {
    SCOPED_TRACE(score);
    const OpSpecPtr spec =
        make_spec(with(base_spec(), {{"attn_dim", 8}, {"hidden_dim", 16}, {"num_targets", true}, {"score", score}}));
    const HostHandle forward(*spec, 1), handle(*spec, 1, Direction::kBackward);
    HostCall call = backward_call(spec, lengths, 11);
    value_of(*spec, call.inputs(), "scaling_seqlen").scalar = 1;
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    const std::pair<const char*, const char*> pairs[] = {{"q", "dq"}, {"k", "dk"}, {"v", "dv"}};
    for (const auto& [of, name] : pairs) {
      // Along one direction for the whole tensor; a step that moves every score by little more than fp32 resolves.
      const std::vector<double> gradient = call.read(name).reals;
      std::vector<double> direction(gradient.size());
      for (size_t i = 0; i < direction.size(); ++i) direction[i] = std::sin(static_cast<double>(3 * i + 1));
      const auto at = [&](double step) {
        std::vector<HostValue> moved = call.inputs();
        std::vector<double>& reals = value_of(*spec, moved, of).tensor.reals;
        for (size_t i = 0; i < reals.size(); ++i) reals[i] += step * direction[i];
        return loss(spec, lengths, forward, moved);
      };
      const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
      const double expected = std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0);
      const double norm = std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
      EXPECT_NEAR(expected, slope, 5e-3 * norm) << name;
    }
  }
}

TEST(HostAttentionBackward, ScalingSeqlenReplacesMaxSeqLen) {
  const OpSpecPtr spec = make_spec(base_spec());
  const HostHandle handle(*spec, 1, Direction::kBackward);
  const Lengths lengths{.rows = {70}, .num_targets = {}, .max_seq_len = 100};
  HostCall call = backward_call(spec, lengths, 3);
  value_of(*spec, call.inputs(), "scaling_seqlen").scalar = 10;
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostAttentionBackward, ThreadsDoNotChangeOneBit) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"num_targets", true}, {"num_softmax_heads", 1}}));
  const HostHandle one(*spec, 1, Direction::kBackward), four(*spec, 4, Direction::kBackward);
  HostCall a = backward_call(spec, adversarial_lengths(), 5), b = backward_call(spec, adversarial_lengths(), 5);
  ASSERT_EQ(a.launch(one), 0) << a.error();
  ASSERT_EQ(b.launch(four), 0) << b.error();
  for (const char* name : kGradients) EXPECT_EQ(a.bytes(name), b.bytes(name)) << name;
}

// The derivative of relu at NaN is 1, as PyTorch's: dv of the row, and dq of what sees it, are NaN.
TEST(HostAttentionBackward, ReluKeepsNan) {
  constexpr size_t kRow = 2 * 32, kBad = 11;
  for (const char* score : {"relu", "relu2"}) {
    const OpSpecPtr spec = make_spec(with(base_spec(), {{"score", score}}));
    const HostHandle handle(*spec, 2, Direction::kBackward);
    const Lengths lengths{.rows = {30}, .num_targets = {}, .max_seq_len = 30};
    HostCall call = backward_call(spec, lengths, 5);
    std::vector<double>& k = value_of(*spec, call.inputs(), "k").tensor.reals;
    std::fill_n(k.begin() + kBad * kRow, kRow, std::numeric_limits<double>::quiet_NaN());
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    const HostTensor dq = call.read("dq"), dv = call.read("dv");
    for (size_t i = 0; i < dq.reals.size(); ++i) {
      ASSERT_TRUE(i / kRow < kBad || std::isnan(dq.reals[i])) << score << " " << i;
      ASSERT_EQ(std::isnan(dv.reals[i]), i / kRow == kBad) << score << " " << i;
    }
  }
}

TEST(HostAttentionBackward, ASequencesNumbersStayInIt) {
  constexpr size_t kRow = 2 * 32, kBegin = 20 * kRow, kEnd = 65 * kRow;
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    Json json = with(base_spec(), {{"dtype", dtype}});
    if (json["dtype"] != "fp32") json.erase("precision");
    const OpSpecPtr spec = make_spec(json);
    const HostHandle handle(*spec, 2, Direction::kBackward);
    const Lengths lengths{.rows = {20, 45, 0, 7}, .num_targets = {}, .max_seq_len = 64};
    for (const double other : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
      HostCall clean = backward_call(spec, lengths, 5), dirty = backward_call(spec, lengths, 5);
      for (const char* name : {"q", "k", "v", "dout"}) {
        std::vector<double>& reals = value_of(*spec, dirty.inputs(), name).tensor.reals;
        std::fill(reals.begin() + kBegin, reals.begin() + kEnd, other);
      }
      ASSERT_EQ(clean.launch(handle), 0) << clean.error();
      ASSERT_EQ(dirty.launch(handle), 0) << dirty.error();
      for (const char* name : kGradients) {
        const HostTensor a = clean.read(name), b = dirty.read(name);
        for (size_t i = 0; i < a.reals.size(); ++i) {
          if (i >= kBegin && i < kEnd) {
            ASSERT_EQ(std::isnan(b.reals[i]), std::isnan(other)) << name << " " << i;
          } else {
            ASSERT_EQ(a.reals[i], b.reals[i]) << name << " " << i;
          }
        }
      }
    }
  }
}

TEST(HostAttentionBackward, RowsOfNoSequenceAndGapsBetweenRowsAreNotWritten) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"heads", 1}}));
  const HostHandle handle(*spec, 2, Direction::kBackward);
  const Lengths lengths{.rows = {3, 300}, .num_targets = {}, .max_seq_len = 300};
  HostCall call = backward_call(spec, lengths, 5, /*row_padding=*/16);
  call.add_rows(37);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const size_t row = (32 + 16) * sizeof(float);
  for (const char* name : kGradients) {
    const auto& bytes = call.bytes(name);
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i / row >= 303 || i % row >= 32 * sizeof(float)) {
        ASSERT_EQ(bytes[i], HostCall::kUntouched) << name << " " << i;
      }
    }
  }
}

// No row of semi-local attention sees a target: its gradients must be written all the same.
TEST(HostAttentionBackward, RowsThatNobodySeesHaveGradientsOfZero) {
  const OpSpecPtr spec = make_spec(with(base_spec(), {{"heads", 1}, {"sla_k1", 9}, {"num_targets", true}}));
  const HostHandle handle(*spec, 1, Direction::kBackward);
  const Lengths lengths{.rows = {5, 40}, .num_targets = {5, 10}, .max_seq_len = 40};
  HostCall call = backward_call(spec, lengths, 5);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const std::vector<double> dq = call.read("dq").reals, dk = call.read("dk").reals, dv = call.read("dv").reals;
  for (size_t i = 0; i < 5 * 32; ++i) EXPECT_EQ(dq[i], 0) << i;
  for (const auto* gradient : {&dk, &dv}) {
    for (size_t i = 35 * 32; i < 45 * 32; ++i) EXPECT_EQ((*gradient)[i], 0) << i;
  }
}

TEST(HostAttentionBackward, EmptyBatches) {
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{}, std::vector<int64_t>{0, 0}}) {
    const OpSpecPtr spec = make_spec(base_spec());
    const HostHandle handle(*spec, 2, Direction::kBackward);
    HostCall call = backward_call(spec, {.rows = rows, .num_targets = {}, .max_seq_len = 8}, 5);
    EXPECT_EQ(call.launch(handle), 0) << call.error();
  }
}

// A window makes the cost linear: 2^17 rows would take minutes if every pair were visited.
TEST(HostAttentionBackward, WindowedLongSequence) {
  const Json json = with(base_spec(), {{"heads", 1}, {"attn_dim", 8}, {"hidden_dim", 8}, {"max_attn_len", 16}});
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, Direction::kBackward);
  HostCall call = backward_call(spec, {.rows = {1 << 17}, .num_targets = {}, .max_seq_len = 1 << 17}, 5);
  EXPECT_EQ(call.launch(handle), 0) << call.error();
}

}  // namespace
}  // namespace hstujit
