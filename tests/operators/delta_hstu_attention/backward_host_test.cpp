// delta_hstu_attention backward on the host against the float64 reference of the spec, and against hstu_attention.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/host/attention_cases.h"
#include "tests/host/guarded_bytes.h"
#include "tests/share.h"

namespace hstujit {
namespace {

using Rows = std::vector<int64_t>;

constexpr Direction kBackward = Direction::kBackward;

// `delta` is repeated over the sequences.
Lengths lengths_with(const Rows& delta, Lengths lengths = adversarial_lengths()) {
  for (size_t i = 0; i < lengths.rows.size(); ++i) lengths.other_rows["Lq"].push_back(delta[i % delta.size()]);
  return lengths;
}

Json delta_spec(bool jagged, const Json& changes = Json::object()) {
  return with(with(base_spec(), {{"op", "delta_hstu_attention"}, {"jagged_queries", jagged}}), changes);
}

// Rows of q that are none, one, a few, more than an item has, and more than any sequence has.
std::vector<Lengths> batches(bool jagged) {
  std::vector<Lengths> result;
  for (const int64_t delta : {0, 1, 300, 700}) result.push_back(lengths_with({delta}));
  if (jagged) result.push_back(lengths_with({0, 3, 5, 1, 17, 600, 64}));
  return result;
}

// One kernel on each of the batches. Rows of no sequence and gaps between rows keep their bytes.
void expect_agreement(const Json& json, const std::vector<Lengths>& batches, int64_t row_padding = 0) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, kBackward);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  for (const Lengths& lengths : batches) {
    HostCall call(spec, lengths, 7, row_padding, kBackward);
    if (!json.contains("attn_func")) call.add_rows(5);  // whose last axis has the rows of q
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "") << lengths.rows_of("Lq")[0];
    EXPECT_EQ(call.written_elsewhere(), "");
  }
}

// Masks of one layout of the queries: either layout finds its rows by itself, and both have the code of masks in
// common.
std::vector<Json> share_of_masks(const std::vector<Json>& masks, bool jagged) {
  return share_of(masks, jagged ? 1 : 0, 2);
}

class DeltaHostBackward : public ::testing::TestWithParam<bool> {};

TEST_P(DeltaHostBackward, EveryMaskCombination) {
  const Lengths lengths = GetParam() ? lengths_with({0, 3, 5, 1, 17, 600, 64}) : lengths_with({70});
  for (const Json& mask : share_of_masks(mask_combinations(), GetParam()))
    expect_agreement(delta_spec(GetParam(), mask), {lengths});
}

TEST_P(DeltaHostBackward, EveryNumberOfRows) {
  for (const Json& mask : share_of_masks(semi_local_and_full_masks(), GetParam()))
    expect_agreement(delta_spec(GetParam(), mask), batches(GetParam()));
}

TEST_P(DeltaHostBackward, TypesHeadDimensionsAndStrides) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {40, 96}, {128, 24}}) {
      Json json = delta_spec(GetParam(), {{"dtype", dtype}, {"attn_dim", attn_dim}, {"hidden_dim", hidden_dim}});
      if (json["dtype"] != "fp32") json.erase("precision");
      expect_agreement(json, {lengths_with({17})});
      expect_agreement(with(json, {{"offsets_dtype", "int32"}}), {lengths_with({17})}, /*row_padding=*/48);
    }
  }
}

const std::vector<Json>& operand_changes() {
  static const std::vector<Json> changes = {
      {{"rab_heads", 1}, {"attn_scale", "rows"}, {"num_targets", true}},
      {{"rab_heads", 2}, {"attn_scale", "scalar"}, {"causal", false}},
      {{"rab_heads", 1}, {"drab", false}, {"attn_scale", "rows"}, {"num_softmax_heads", 1}},
      {{"num_softmax_heads", 2}, {"rab_heads", 2}, {"max_attn_len", 40}},
      {{"operands", "w: row(grad), h: row(heads, grad), c: sequence(grad), p: pair(grad)"},
       {"score", "silu(x * w[row] + w[col] * h[col] + c + p[row, col])"}},
      {{"operands", "b: table(9, grad), s: scalar(grad), d: head(grad)"},
       {"score", "silu(x + b[clamp(row - col, 0, 8)] + s * d)"},
       {"attn_scale", "rows"}},
      {{"operands", "doc: row(int64)"}, {"mask", "col <= row and doc[row] // 64 == doc[col] // 64"}}};
  return changes;
}

TEST_P(DeltaHostBackward, OperandsAndTheirGradients) {
  const Lengths batch{{0, 1, 5, 70, 33, 16, 3}, {0, 1, 2, 7, 0, 16, 3}, 80};
  for (const Json& changes : operand_changes()) {
    const std::vector<Lengths> batches = {lengths_with({3}, batch), lengths_with({40}, batch)};
    expect_agreement(delta_spec(GetParam(), changes), batches);
  }
}

TEST_P(DeltaHostBackward, AllRowsAreHstuAttentionToTheBit) {
  const Lengths lengths = GetParam() ? lengths_with(kRows) : lengths_with({70}, {{70, 70, 70}, {3, 0, 70}, 70});
  std::vector<Json> changes = operand_changes();
  changes.push_back({{"num_targets", true}, {"contextual_seq_len", 7}, {"max_attn_len", 40}});
  for (const Json& change : changes) {
    SCOPED_TRACE(change.dump());
    const OpSpecPtr whole = make_spec(with(base_spec(), change)), spec = make_spec(delta_spec(GetParam(), change));
    HostCall expected(whole, lengths, 7, 0, kBackward), call(spec, lengths, 7, 0, kBackward);
    ASSERT_EQ(expected.launch(HostHandle(*whole, 2, kBackward)), 0) << expected.error();
    ASSERT_EQ(call.launch(HostHandle(*spec, 2, kBackward)), 0) << call.error();
    for (const Argument& argument : whole->signature(kBackward)) {
      if (argument.role != ArgumentRole::kOutput) continue;
      EXPECT_EQ(call.bytes(argument.name), expected.bytes(argument.name)) << argument.name;
    }
  }
}

// Rows before their sequence have gradients of zero, and add nothing to others, whatever they hold.
TEST_P(DeltaHostBackward, RowsBeforeASequenceAddNothing) {
  const OpSpecPtr spec = make_spec(delta_spec(GetParam(), {{"attn_scale", "rows"}, {"rab_heads", 1}}));
  const HostHandle handle(*spec, 2, kBackward);
  const Lengths lengths{{3, 0, 70}, {}, 80, {{"Lq", {5, 5, 5}}}};
  HostCall clean(spec, lengths, 7, 0, kBackward), dirty = clean;
  const size_t row = 2 * 32;
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 2}, {5, 10}}) {
    for (const size_t tensor : {size_t{0}, size_t{3}}) {  // q and dout
      std::vector<double>& reals = dirty.inputs()[tensor].tensor.reals;
      std::fill(reals.begin() + begin * row, reals.begin() + end * row, std::numeric_limits<double>::quiet_NaN());
    }
  }
  ASSERT_EQ(clean.launch(handle), 0) << clean.error();
  ASSERT_EQ(dirty.launch(handle), 0) << dirty.error();
  for (const char* name : {"dq", "dk", "dv", "drab", "dattn_scale"})
    EXPECT_EQ(clean.bytes(name), dirty.bytes(name)) << name;
  const std::vector<double> dq = dirty.read("dq").reals;
  for (size_t i = 0; i < 2 * row; ++i) ASSERT_EQ(dq[i], 0) << i;
  for (size_t i = 5 * row; i < 10 * row; ++i) ASSERT_EQ(dq[i], 0) << i;
}

TEST_P(DeltaHostBackward, EmptyBatches) {
  const OpSpecPtr spec = make_spec(delta_spec(GetParam()));
  const HostHandle handle(*spec, 2, kBackward);
  for (const Lengths& lengths : {Lengths{{}, {}, 8}, Lengths{{0, 0}, {}, 8, {{"Lq", {0, 0}}}},
                                 Lengths{{0, 0}, {}, 8, {{"Lq", {3, 3}}}}, Lengths{{4, 1}, {}, 8, {{"Lq", {0, 0}}}}}) {
    HostCall call(spec, lengths, 5, 0, kBackward);
    EXPECT_EQ(call.launch(handle), 0) << call.error();
    for (const char* name : {"dq", "dk", "dv"}) {
      for (const double value : call.read(name).reals) EXPECT_EQ(value, 0);
    }
  }
}

TEST_P(DeltaHostBackward, ThreadsDoNotChangeOneBit) {
  for (const Json& changes : operand_changes()) {
    const OpSpecPtr spec = make_spec(delta_spec(GetParam(), changes));
    const HostHandle one(*spec, 1, kBackward), four(*spec, 4, kBackward);
    HostCall a(spec, lengths_with({65}), 5, 0, kBackward), b = a;
    ASSERT_EQ(a.launch(one), 0) << a.error();
    ASSERT_EQ(b.launch(four), 0) << b.error();
    for (const char* name : {"dq", "dk", "dv"}) EXPECT_EQ(a.bytes(name), b.bytes(name)) << name;
  }
}

TEST_P(DeltaHostBackward, SenselessOffsetsTouchNothingOutside) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const Json changes = {{"num_targets", true}, {"max_attn_len", 9}, {"attn_scale", "rows"}};
  const OpSpecPtr spec = make_spec(delta_spec(GetParam(), changes));
  const Signature signature = spec->signature(kBackward);
  const HostHandle handle(*spec, 2, kBackward);
  std::vector<std::string> tensors, offsets_names = {"seq_offsets"};
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kTensor) tensors.push_back(argument.name);
  }
  if (GetParam()) offsets_names.emplace_back("seq_offsets_q");
  for (const std::string& name : offsets_names) {
    for (const Rows& offsets :
         {Rows{0, 500, 20, 90}, {-7, tiny, huge, 3}, {huge, 0, 0, 0}, {5, 5, 90, 80}, {0, 90, 10, 90}, {9, 6, 3, 0}}) {
      HostCall call(spec, {{20, 30, 40}, {0, 0, 0}, 64, {{"Lq", {10, 10, 10}}}}, 5, 0, kBackward);
      call.inputs()[static_cast<size_t>(find_argument(signature, name))].tensor.integers = offsets;
      call.inputs()[static_cast<size_t>(find_argument(signature, "num_targets"))].tensor.integers = {huge, -3, tiny};
      expect_launch_within_bounds(call, handle, tensors);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Queries, DeltaHostBackward, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Jagged" : "Dense"); });

}  // namespace
}  // namespace hstujit
