// Relative bias and factors of the scores on the host, against the float64 reference of the spec.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/support/text.h"
#include "tests/host/attention_cases.h"
#include "tests/host/guarded_bytes.h"
#include "tests/share.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

HostValue& value_of(const OpSpec& spec, Direction direction, std::vector<HostValue>& values, std::string_view name) {
  return values[static_cast<size_t>(find_argument(spec.signature(direction), name))];
}

std::vector<std::string> outputs_of(const OpSpec& spec, Direction direction) {
  std::vector<std::string> names;
  for (const Argument& argument : spec.signature(direction)) {
    if (argument.role == ArgumentRole::kOutput) names.push_back(argument.name);
  }
  return names;
}

// Empty, one row, odd lengths, blocks' edges; max_seq_len is odd, too.
Lengths some_lengths() {
  return {.rows = {0, 1, 5, 129, 0, 33, 16, 257, 3}, .num_targets = {0, 1, 2, 100, 0, 33, 3, 9, 1}, .max_seq_len = 261};
}

Json bias_spec(const Json& changes = Json::object()) {
  return with(with(base_spec(), {{"heads", 4}, {"attn_dim", 16}, {"hidden_dim", 24}}), changes);
}

void expect_agreement(const Json& json, Direction direction, const Lengths& lengths = some_lengths(),
                      int64_t row_padding = 0) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, direction);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, lengths, 7, row_padding, direction);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostBias, EveryNumberOfBiasHeads) {
  for (const Direction direction : kDirections) {
    for (const int heads : {1, 2, 4}) expect_agreement(bias_spec({{"rab_heads", heads}}), direction);
  }
}

TEST(HostBias, EveryKindOfFactor) {
  for (const Direction direction : kDirections) {
    for (const char* kind : {"rows", "scalar"}) {
      expect_agreement(bias_spec({{"attn_scale", kind}}), direction);
      expect_agreement(bias_spec({{"attn_scale", kind}, {"rab_heads", 2}}), direction);
    }
  }
}

TEST(HostBias, HeadsWithSoftmax) {
  for (const Direction direction : kDirections) {
    for (const int softmax : {1, 3, 4}) {
      for (const char* kind : {"none", "rows", "scalar"}) {
        expect_agreement(bias_spec({{"num_softmax_heads", softmax}, {"rab_heads", 2}, {"attn_scale", kind}}),
                         direction);
      }
    }
    expect_agreement(bias_spec({{"num_softmax_heads", 1}, {"attn_scale", "rows"}, {"num_targets", true}}), direction);
  }
}

TEST(HostBias, EveryScore) {
  for (const Direction direction : kDirections) {
    for (const std::string& score : split(kHstuScores, ' ')) {
      expect_agreement(bias_spec({{"rab_heads", 2}, {"attn_scale", "rows"}, {"score", score}, {"num_targets", true}}),
                       direction);
    }
  }
}

TEST(HostBias, Masks) {
  const Json masks = Json::array({{{"num_targets", true}, {"target_group_size", 3}, {"contextual_seq_len", 7}},
                                  {{"causal", false}, {"num_targets", true}, {"contextual_seq_len", 7}},
                                  {{"max_attn_len", 40}, {"min_full_attn_seq_len", 11}},
                                  {{"causal", false}, {"max_attn_len", 1}},
                                  {{"sla_k1", 21}, {"sla_k2", 6}, {"num_targets", true}},
                                  {{"causal", false}, {"full_mask", true}}});
  for (const Direction direction : kDirections) {
    for (const Json& mask : masks) {
      expect_agreement(bias_spec(with({{"rab_heads", 2}, {"attn_scale", "rows"}}, mask)), direction);
    }
  }
}

TEST(HostBias, EveryTypeAndHeadDimension) {
  const std::vector<Json> kinds = {{{"rab_heads", 1}, {"attn_scale", "rows"}},
                                   {{"rab_heads", 2}, {"attn_scale", "scalar"}}};
  size_t turn = 0;  // for a change, a kind here and the other one in the other direction
  for (const Direction direction : kDirections) {
    for (const char* dtype : {"bf16", "fp16", "fp32"}) {
      for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {40, 96}, {256, 136}}) {
        Json json = bias_spec({{"dtype", dtype}, {"attn_dim", attn_dim}, {"hidden_dim", hidden_dim}, {"heads", 2}});
        if (json["dtype"] != "fp32") json.erase("precision");
        for (const Json& kind : share_of(kinds, turn++ % 2, 2)) expect_agreement(with(json, kind), direction);
      }
    }
  }
}

TEST(HostBias, StridedTensors) {
  for (const Direction direction : kDirections) {
    expect_agreement(bias_spec({{"rab_heads", 2}, {"attn_scale", "rows"}, {"offsets_dtype", "int32"}}), direction,
                     some_lengths(), 48);
  }
}

TEST(HostBias, OneBiasForTheBatch) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 2}}));
  const HostHandle handle(*spec, 2);
  const Lengths lengths{.rows = {20, 31, 7}, .num_targets = {}, .max_seq_len = 31};
  HostCall call(spec, lengths, 3);
  std::vector<double>& bias = value_of(*spec, Direction::kForward, call.inputs(), "rab").tensor.reals;
  const size_t part = bias.size() / 3;
  for (size_t i = part; i < bias.size(); ++i) bias[i] = bias[i - part];
  call.pack_inputs();
  const int64_t* const own = call.value("rab").strides;
  const int64_t strides[] = {0, own[1], own[2], own[3]};
  call.value("rab").strides = strides;
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostBias, GradientsThatNobodyAsksFor) {
  const Json changes = {{"rab_heads", 2}, {"attn_scale", "rows"}, {"drab", false}, {"dattn_scale", false}};
  EXPECT_EQ(outputs_of(*make_spec(bias_spec(changes)), Direction::kBackward),
            (std::vector<std::string>{"dq", "dk", "dv"}));
  expect_agreement(bias_spec(changes), Direction::kBackward);
}

TEST(HostBias, GradientsThatAreAddedToOthers) {
  const Json adding = {{"adds_gradients", true}, {"rab_heads", 2}};
  for (const char* dtype : {"bf16", "fp32"}) {
    Json json = bias_spec(with(adding, {{"dtype", dtype}, {"attn_scale", "rows"}}));
    if (json["dtype"] != "fp32") json.erase("precision");
    expect_agreement(json, Direction::kBackward, some_lengths(), 48);
  }
  expect_agreement(bias_spec(with(adding, {{"attn_scale", "scalar"}})), Direction::kBackward);
  expect_agreement(bias_spec(with(adding, {{"attn_scale", "scalar"}, {"drab", false}})), Direction::kBackward);
}

// Where the sums lie in what they are added to, as steps of a program have them, the bits are the same.
TEST(HostBias, GradientsThatAreAddedInPlace) {
  for (const char* scale : {"rows", "scalar"}) {
    const OpSpecPtr spec = make_spec(bias_spec({{"adds_gradients", true}, {"rab_heads", 2}, {"attn_scale", scale}}));
    const HostHandle handle(*spec, 2, Direction::kBackward);
    HostCall apart(spec, some_lengths(), 7, 0, Direction::kBackward);
    HostCall in_place(spec, some_lengths(), 7, 0, Direction::kBackward);
    ASSERT_EQ(apart.launch(handle), 0) << apart.error();
    in_place.pack_inputs();
    for (const std::string name : {"drab", "dattn_scale"})
      in_place.value(name).data = in_place.value(name + "_before").data;
    ASSERT_EQ(in_place.launch(handle), 0) << in_place.error();
    for (const std::string name : {"drab", "dattn_scale"})
      EXPECT_EQ(apart.bytes(name), in_place.bytes(name + "_before"));
  }
}

TEST(HostBias, ScalingSeqlenAndMaxSeqLenAreNotUsedWithFactors) {
  const OpSpecPtr spec = make_spec(bias_spec({{"attn_scale", "scalar"}}));
  const HostHandle handle(*spec, 1, Direction::kBackward);
  const Lengths lengths{.rows = {70}, .num_targets = {}, .max_seq_len = 100};
  HostCall one(spec, lengths, 3, 0, Direction::kBackward), other(spec, lengths, 3, 0, Direction::kBackward);
  value_of(*spec, Direction::kBackward, other.inputs(), "scaling_seqlen").scalar = 7;
  ASSERT_EQ(one.launch(handle), 0) << one.error();
  ASSERT_EQ(other.launch(handle), 0) << other.error();
  for (const char* name : {"dq", "dk", "dv", "dattn_scale"}) EXPECT_EQ(one.bytes(name), other.bytes(name)) << name;
}

TEST(HostBias, ThreadsDoNotChangeOneBit) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 2}, {"attn_scale", "scalar"}}));
  const HostHandle one(*spec, 1, Direction::kBackward), four(*spec, 4, Direction::kBackward);
  HostCall a(spec, some_lengths(), 5, 0, Direction::kBackward), b(spec, some_lengths(), 5, 0, Direction::kBackward);
  ASSERT_EQ(a.launch(one), 0) << a.error();
  ASSERT_EQ(b.launch(four), 0) << b.error();
  for (const std::string& name : outputs_of(*spec, Direction::kBackward)) EXPECT_EQ(a.bytes(name), b.bytes(name));
}

// Every element of drab, nothing of rows and gaps that are nobody's.
TEST(HostBias, WhatIsWritten) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 2}, {"attn_scale", "rows"}}));
  const HostHandle handle(*spec, 2, Direction::kBackward);
  const Lengths lengths{.rows = {3, 0, 9}, .num_targets = {}, .max_seq_len = 300};
  HostCall call(spec, lengths, 5, /*row_padding=*/16, Direction::kBackward);
  call.add_rows(4);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  std::vector<HostValue> expected = call.inputs();
  spec->reference(Direction::kBackward, lengths, expected);
  const std::vector<double> drab = call.read("drab").reals;
  const std::vector<double>& wanted = value_of(*spec, Direction::kBackward, expected, "drab").tensor.reals;
  ASSERT_EQ(drab.size(), wanted.size());
  for (size_t i = 0; i < drab.size(); ++i) ASSERT_NEAR(drab[i], wanted[i], 1e-6) << i;
  for (const char* name : {"drab", "dattn_scale"}) {
    const auto& bytes = call.bytes(name);
    const std::vector<bool> used = call.used_bytes(name);
    EXPECT_EQ(std::count(used.begin(), used.end(), false), (name[1] == 'r' ? 3 * 2 * 300 * 16 : 4) * 4) << name;
    for (size_t i = 0; i < bytes.size(); ++i) ASSERT_TRUE(used[i] || bytes[i] == HostCall::kUntouched) << name << i;
  }
}

TEST(HostBias, EmptyBatchesHaveGradientsOfZero) {
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{}, std::vector<int64_t>{0, 0}}) {
    const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 1}, {"attn_scale", "scalar"}}));
    const HostHandle handle(*spec, 2, Direction::kBackward);
    HostCall call(spec, {.rows = rows, .num_targets = {}, .max_seq_len = 8}, 5, 0, Direction::kBackward);
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.read("dattn_scale").reals, std::vector<double>{0});
    EXPECT_EQ(call.read("drab").reals, std::vector<double>(rows.size() * 64, 0.0));
  }
}

TEST(HostBias, ASequencesNumbersStayInIt) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 2}, {"attn_scale", "rows"}}));
  const HostHandle handle(*spec, 1, Direction::kBackward);
  const Lengths lengths{.rows = {20, 45, 7}, .num_targets = {}, .max_seq_len = 64};
  HostCall clean(spec, lengths, 5, 0, Direction::kBackward), dirty(spec, lengths, 5, 0, Direction::kBackward);
  std::vector<double>& bias = value_of(*spec, Direction::kBackward, dirty.inputs(), "rab").tensor.reals;
  const size_t part = bias.size() / 3;
  std::fill(bias.begin() + static_cast<std::ptrdiff_t>(part), bias.begin() + static_cast<std::ptrdiff_t>(2 * part),
            std::numeric_limits<double>::quiet_NaN());
  ASSERT_EQ(clean.launch(handle), 0) << clean.error();
  ASSERT_EQ(dirty.launch(handle), 0) << dirty.error();
  for (const std::string& name : outputs_of(*spec, Direction::kBackward)) {
    const std::vector<double> a = clean.read(name).reals, b = dirty.read(name).reals;
    const size_t row = name == "drab" ? part : a.size() / 72, first = name == "drab" ? 1 : 20,
                 end = name == "drab" ? 2 : 65;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool own = i / row >= first && i / row < end;
      ASSERT_TRUE(own || a[i] == b[i]) << name << " " << i;
    }
  }
}

// Rows that a bias has behind the sequence, and its columns beside the mask, have no part in anything.
TEST(HostBias, WhatIsOfNoPairIsNotUsed) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 1}, {"heads", 1}}));
  const HostHandle handle(*spec, 1, Direction::kBackward);
  const Lengths lengths{.rows = {40}, .num_targets = {}, .max_seq_len = 64};
  HostCall clean(spec, lengths, 5, 0, Direction::kBackward), dirty(spec, lengths, 5, 0, Direction::kBackward);
  std::vector<double>& bias = value_of(*spec, Direction::kBackward, dirty.inputs(), "rab").tensor.reals;
  for (size_t i = 0; i < bias.size(); ++i) {
    if (i / 64 >= 40 || i % 64 > i / 64) bias[i] = std::numeric_limits<double>::quiet_NaN();
  }
  ASSERT_EQ(clean.launch(handle), 0) << clean.error();
  ASSERT_EQ(dirty.launch(handle), 0) << dirty.error();
  for (const char* name : {"dq", "dk", "dv", "drab"}) EXPECT_EQ(clean.bytes(name), dirty.bytes(name)) << name;
}

TEST(HostBias, NothingOutsideTheTensorsIsTouched) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const int64_t longest : {257, 263}) {
      // Rows of the bias one right behind the other, so that the memory ends with the last.
      Json json =
          bias_spec({{"dtype", dtype}, {"heads", 2}, {"rab_heads", 1}, {"attn_scale", "rows"}, {"alignment", 4}});
      if (json["dtype"] != "fp32") json["alignment"] = 2;
      json.erase("precision");
      const OpSpecPtr spec = make_spec(json);
      for (const Direction direction : kDirections) {
        const HostHandle handle(*spec, 2, direction);
        HostCall call(spec, {.rows = {5, 257, 3}, .num_targets = {}, .max_seq_len = longest}, 4, 0, direction);
        std::vector<std::string> names;
        for (const Argument& argument : spec->signature(direction)) {
          if (argument.kind == ArgumentKind::kTensor) names.push_back(argument.name);
        }
        expect_launch_within_bounds(call, handle, names);
      }
    }
  }
}

TEST(HostBias, ASequenceLongerThanTheBiasIsASentence) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 1}}));
  const HostHandle handle(*spec, 1);
  HostCall call(spec, {.rows = {5, 9}, .num_targets = {}, .max_seq_len = 9}, 4);
  value_of(*spec, Direction::kForward, call.inputs(), "seq_offsets").tensor.integers = {0, 2, 14};
  EXPECT_EQ(call.launch(handle), static_cast<int>(Code::kInvalidArgument));
  EXPECT_EQ(call.error(), "sequence 1 has 12 rows; rab has biases for max_seq_len, which is 9");
}

TEST(HostBias, SizesThatDifferFromMaxSeqLenAreASentence) {
  const OpSpecPtr spec = make_spec(bias_spec({{"rab_heads", 1}}));
  const HostHandle handle(*spec, 1);
  HostCall call(spec, {.rows = {5, 9}, .num_targets = {}, .max_seq_len = 9}, 4);
  call.pack_inputs();
  call.value("max_seq_len").integer = 10;
  EXPECT_EQ(call.launch(handle), static_cast<int>(Code::kInvalidArgument));
  EXPECT_EQ(call.error(), "rab has size 9 along axis 2; it must be max_seq_len, which is 10");
}

TEST(HostBias, LastRowsOfSequences) {
  Lengths lengths = some_lengths();
  lengths.other_rows["Lq"] = {3, 5, 2, 64, 0, 33, 20, 257, 1};
  Json json = bias_spec({{"op", "delta_hstu_attention"}, {"rab_heads", 2}, {"attn_scale", "rows"}});
  expect_agreement(with(json, {{"jagged_queries", true}}), Direction::kForward, lengths);
  expect_agreement(with(json, {{"jagged_queries", true}, {"num_targets", true}}), Direction::kForward, lengths, 48);
  lengths.other_rows["Lq"].assign(lengths.rows.size(), 17);
  expect_agreement(json, Direction::kForward, lengths);
  expect_agreement(with(json, {{"attn_scale", "scalar"}}), Direction::kForward, lengths);
}

}  // namespace
}  // namespace hstujit
