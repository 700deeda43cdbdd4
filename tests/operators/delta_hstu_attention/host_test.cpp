// delta_hstu_attention on the host against the float64 reference of the spec, through the C boundary.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/host/guarded_bytes.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<int64_t>;

// Empty, one row, a few, blocks' edges and one long sequence among tiny ones.
const Rows kRows = {0, 1, 5, 2, 600, 0, 33, 16, 257, 3, 64, 1};

// `delta` is repeated over the sequences.
Lengths some_lengths(const Rows& delta) {
  Lengths lengths{kRows, {}, 640};
  for (size_t i = 0; i < kRows.size(); ++i) {
    lengths.num_targets.push_back(std::min<int64_t>(kRows[i], static_cast<int64_t>(i * 3 % 20)));
    lengths.other_rows["Lq"].push_back(delta[i % delta.size()]);
  }
  return lengths;
}

Json base_spec(bool jagged_queries) {
  return {{"op", "delta_hstu_attention"},
          {"heads", 2},
          {"attn_dim", 32},
          {"hidden_dim", 32},
          {"dtype", "fp32"},
          {"precision", "ieee"},
          {"jagged_queries", jagged_queries}};
}

Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

// One kernel on each of the batches.
void expect_agreement(const Json& json, const std::vector<Lengths>& batches, int64_t row_padding = 0) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  for (const Lengths& lengths : batches) {
    HostCall call(spec, lengths, 7, row_padding);
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "") << lengths.rows_of("Lq")[0];
  }
}

class DeltaHostAttention : public ::testing::TestWithParam<bool> {
 protected:
  // None, one, more rows than an item has, more than any sequence has; mixed where they may differ.
  static std::vector<Lengths> batches() {
    std::vector<Lengths> result;
    for (const int64_t delta : {0, 1, 300, 700}) result.push_back(some_lengths({delta}));
    if (GetParam()) result.push_back(some_lengths({0, 3, 5, 1, 17, 600, 64}));
    return result;
  }
};

TEST_P(DeltaHostAttention, Masks) {
  const Json masks = Json::array({Json::object(),
                                  {{"num_targets", true}},
                                  {{"num_targets", true}, {"target_group_size", 3}},
                                  {{"max_attn_len", 40}, {"contextual_seq_len", 7}},
                                  {{"max_attn_len", 40}, {"min_full_attn_seq_len", 11}, {"num_targets", true}},
                                  {{"causal", false}, {"num_targets", true}},
                                  {{"causal", false}, {"full_mask", true}},
                                  {{"attn_func", 3}, {"attn_func_heads", 2}},
                                  {{"sla_k1", 21}, {"sla_k2", 6}, {"num_targets", true}}});
  for (const Json& mask : masks) expect_agreement(with(base_spec(GetParam()), mask), batches());
}

TEST_P(DeltaHostAttention, TypesHeadDimensionsAndStrides) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {40, 96}, {128, 24}}) {
      Json json = with(base_spec(GetParam()), {{"dtype", dtype}, {"attn_dim", attn_dim}, {"hidden_dim", hidden_dim}});
      if (json["dtype"] != "fp32") json.erase("precision");
      expect_agreement(json, {some_lengths({17})});
      expect_agreement(with(json, {{"offsets_dtype", "int32"}}), {some_lengths({17})}, /*row_padding=*/48);
    }
  }
}

// Rows before their sequence are written as zeros, whatever q, k and v hold.
TEST_P(DeltaHostAttention, RowsBeforeASequenceAreZeroAlsoWhereInputsAreNoNumbers) {
  const OpSpecPtr spec = make_spec(base_spec(GetParam()));
  const HostHandle handle(*spec, 2);
  HostCall call(spec, {{3, 0, 70}, {}, 100, {{"Lq", {5, 5, 5}}}}, 7);
  for (size_t tensor = 0; tensor < 3; ++tensor) {
    std::vector<double>& reals = call.inputs()[tensor].tensor.reals;
    std::fill(reals.begin(), reals.end(), std::numeric_limits<double>::quiet_NaN());
  }
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const std::vector<double> out = call.read("out").reals;
  const size_t row = 2 * 32;
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 2}, {5, 10}}) {
    for (size_t i = begin * row; i < end * row; ++i) ASSERT_EQ(out[i], 0) << i;
  }
  for (size_t i = 2 * row; i < 5 * row; ++i) ASSERT_TRUE(std::isnan(out[i])) << i;
}

TEST_P(DeltaHostAttention, EmptyBatches) {
  const OpSpecPtr spec = make_spec(base_spec(GetParam()));
  const HostHandle handle(*spec, 2);
  for (const Lengths& lengths : {Lengths{{}, {}, 8}, Lengths{{0, 0}, {}, 8, {{"Lq", {0, 0}}}},
                                 Lengths{{0, 0}, {}, 8, {{"Lq", {3, 3}}}}, Lengths{{4, 1}, {}, 8, {{"Lq", {0, 0}}}}}) {
    HostCall call(spec, lengths, 5);
    EXPECT_EQ(call.launch(handle), 0) << call.error();
    for (const double value : call.read("out").reals) EXPECT_EQ(value, 0);
  }
}

TEST_P(DeltaHostAttention, ThreadsDoNotChangeOneBit) {
  const OpSpecPtr spec = make_spec(base_spec(GetParam()));
  const HostHandle one(*spec, 1), four(*spec, 4);
  HostCall a(spec, some_lengths({65}), 5), b(spec, some_lengths({65}), 5);
  ASSERT_EQ(a.launch(one), 0) << a.error();
  ASSERT_EQ(b.launch(four), 0) << b.error();
  EXPECT_EQ(a.bytes("out"), b.bytes("out"));
}

TEST_P(DeltaHostAttention, NothingOutsideTheTensorsIsTouched) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    Json json = with(base_spec(GetParam()), {{"dtype", dtype}, {"attn_dim", 24}, {"hidden_dim", 40}});
    if (json["dtype"] != "fp32") json.erase("precision");
    const OpSpecPtr spec = make_spec(json);
    const HostHandle handle(*spec, 2);
    for (const int64_t delta : {1, 6, 280}) {
      HostCall call(spec, {{5, 270, 3}, {}, 270, {{"Lq", Rows(3, delta)}}}, 4);
      expect_launch_within_bounds(call, handle, {"q", "k", "v", "seq_offsets", "out"});
    }
  }
}

TEST_P(DeltaHostAttention, SenselessOffsetsTouchNothingOutside) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const OpSpecPtr spec = make_spec(with(base_spec(GetParam()), {{"num_targets", true}, {"max_attn_len", 9}}));
  const Signature signature = spec->signature(Direction::kForward);
  const HostHandle handle(*spec, 2);
  std::vector<std::string> tensors = {"q", "k", "v", "seq_offsets", "num_targets", "out"};
  std::vector<std::string> offsets_names = {"seq_offsets"};
  if (GetParam()) {
    offsets_names.emplace_back("seq_offsets_q");
    tensors.emplace_back("seq_offsets_q");
  }
  for (const std::string& name : offsets_names) {
    for (const Rows& offsets :
         {Rows{0, 500, 20, 90}, {-7, tiny, huge, 3}, {huge, 0, 0, 0}, {5, 5, 90, 80}, {0, 90, 10, 90}, {9, 6, 3, 0}}) {
      HostCall call(spec, {{20, 30, 40}, {0, 0, 0}, 64, {{"Lq", {10, 10, 10}}}}, 5);
      call.inputs()[static_cast<size_t>(find_argument(signature, name))].tensor.integers = offsets;
      call.inputs()[static_cast<size_t>(find_argument(signature, "num_targets"))].tensor.integers = {huge, -3, tiny};
      expect_launch_within_bounds(call, handle, tensors);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Queries, DeltaHostAttention, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Jagged" : "Dense"); });

TEST(DeltaHostAttentionJagged, RowsOfNoSequenceAndGapsBetweenRowsAreNotWritten) {
  const OpSpecPtr spec = make_spec(with(base_spec(true), {{"heads", 1}}));
  const HostHandle handle(*spec, 2);
  HostCall call(spec, {{3, 300}, {}, 300, {{"Lq", {5, 280}}}}, 5, /*row_padding=*/16);
  call.add_rows(37);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const auto& bytes = call.bytes("out");
  const size_t row = (32 + 16) * sizeof(float);
  ASSERT_EQ(bytes.size(), (285 + 37) * row);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i / row >= 285 || i % row >= 32 * sizeof(float)) {
      ASSERT_EQ(bytes[i], HostCall::kUntouched) << i;
    }
  }
}

TEST(DeltaHostAttentionDense, AnotherNumberOfRowsIsRefused) {
  const OpSpecPtr spec = make_spec(base_spec(false));
  const HostHandle handle(*spec, 1);
  HostCall call(spec, {{3, 30}, {}, 30, {{"Lq", {5, 5}}}}, 5);
  call.pack_inputs();
  call.value("max_delta_len").integer = 6;
  EXPECT_NE(call.launch(handle), 0);
  EXPECT_EQ(call.error(),
            "q has size 10 along axis 0; it must be B*max_delta_len, with 2 sequences and max_delta_len = 6");
}

}  // namespace
}  // namespace hstujit
