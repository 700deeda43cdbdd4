// Kernels of delta_hstu_attention backward, in emulation against the float64 reference.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

constexpr Direction kBackward = Direction::kBackward;

Json delta(const Json& changes = Json::object()) {
  return with(with(base(), {{"op", "delta_hstu_attention"}, {"jagged_queries", true}}), changes);
}

// Sequences around the tiles, with no row of q, one, a tile's, all, and more than they have.
Lengths jagged_lengths(bool targets) {
  Lengths lengths{.rows = {1, 33, 0, 70, 16, 31, 64, 40}, .num_targets = {}, .max_seq_len = 70};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 16, 0, 3, 7};
  lengths.other_rows["Lq"] = {1, 20, 3, 33, 16, 40, 0, 1};
  return lengths;
}

Lengths uniform_lengths(bool targets, int64_t rows) {
  Lengths lengths = jagged_lengths(targets);
  lengths.other_rows["Lq"].assign(lengths.rows.size(), rows);
  return lengths;
}

void check(const Json& json, const KernelConfig& config) {
  SCOPED_TRACE(fmt::format("{} {}", json.dump(), describe(config)));
  const bool targets = json.value("num_targets", false);
  Case(json, kBackward, config, jagged_lengths(targets)).check();
}

TEST(EmulatedDeltaBackward, EveryType) {
  for (const Json& type : {Json{{"dtype", "bf16"}}, Json{{"dtype", "fp16"}}, Json{{"dtype", "fp32"}},
                           Json{{"dtype", "fp32"}, {"precision", "ieee"}}}) {
    check(delta(type), ampere_tile(32, 2, 32, 2));
    check(delta(with(type, {{"attn_dim", 16}, {"hidden_dim", 40}})), ampere_tile(64, 2, 16, 1));
  }
}

TEST(EmulatedDeltaBackward, EveryMask) {
  for (const Json& mask : mask_changes()) check(delta(mask), ampere_tile(32, 2, 16, 2));
}

// Fewer rows than sequences have, and more than all of them.
TEST(EmulatedDeltaBackward, AsManyRowsOfEachSequence) {
  const Json json = delta({{"jagged_queries", false}});
  const Json window = with(json, {{"num_targets", true}, {"contextual_seq_len", 6}, {"max_attn_len", 9}});
  for (const int64_t rows : {0, 1, 40, 100}) {
    SCOPED_TRACE(rows);
    Case(window, kBackward, ampere_tile(32, 2, 16, 2), uniform_lengths(true, rows)).check();
    Case(with(json, {{"dtype", "fp16"}, {"full_mask", true}}), kBackward, ampere_tile(64, 4, 32, 1),
         uniform_lengths(false, rows))
        .check();
  }
}

TEST(EmulatedDeltaBackward, OddWidths) {
  for (const auto& [attn, hidden] : {std::pair{8, 24}, {40, 8}, {256, 256}})
    check(delta({{"attn_dim", attn}, {"hidden_dim", hidden}, {"heads", 1}}), ampere_tile(32, 2, 16, 1));
  check(delta({{"alignment", 2}, {"offsets_dtype", "int32"}}), ampere_tile(32, 2, 16, 2));
  check(delta({{"alignment", 4}, {"dtype", "fp32"}}), ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedDeltaBackward, Intervals) {
  for (const Json& mask : {Json{{"attn_func", 3}}, Json{{"attn_func", 5}, {"attn_func_heads", 2}}})
    check(delta(mask), ampere_tile(32, 2, 16, 2));
  check(delta({{"attn_func", 3}, {"num_softmax_heads", 1}, {"rab_heads", 2}}), ampere_tile(32, 2, 16, 2));
}

const std::vector<Json>& operand_changes() {
  static const std::vector<Json> changes = {
      {{"rab_heads", 1}, {"attn_scale", "rows"}, {"num_targets", true}},
      {{"rab_heads", 2}, {"attn_scale", "scalar"}, {"causal", false}, {"dtype", "fp32"}},
      {{"rab_heads", 2}, {"attn_scale", "rows"}, {"num_softmax_heads", 1}, {"full_mask", true}},
      {{"num_softmax_heads", 2}, {"max_attn_len", 20}, {"attn_scale", "scalar"}},
      {{"operands", "w: row(grad), h: row(heads, grad)"}, {"score", "silu(x * w[row] + w[col] * h[col])"}},
      {{"operands", "w: row(grad)"}, {"score", "silu(x * w[row])"}, {"attn_scale", "rows"}},
      {{"operands", "c: sequence(grad), p: pair(grad)"}, {"score", "silu(x + c + p[row, col])"}},
      {{"operands", "b: table(9, grad), s: scalar(grad), d: head(grad)"},
       {"score", "silu(x + b[clamp(row - col, 0, 8)] + s * d)"},
       {"attn_scale", "rows"}},
      {{"operands", "doc: row(int64)"}, {"mask", "col <= row and doc[row] // 64 == doc[col] // 64"}},
      {{"num_contexts", true},
       {"num_targets", true},
       {"operands", "t: table(9, grad)"},
       {"num_softmax_heads", 1},
       {"softmax_score", "x + t[clamp(row - col, 0, 8)]"}}};
  return changes;
}

TEST(EmulatedDeltaBackward, OperandsAndTheirGradients) {
  for (const Json& changes : operand_changes()) check(delta(changes), ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedDeltaBackward, OperandsWithAsManyRowsOfEachSequence) {
  for (const Json& changes : operand_changes()) {
    const Json json = delta(with(changes, {{"jagged_queries", false}, {"heads", 2}}));
    SCOPED_TRACE(json.dump());
    for (const int64_t rows : {3, 100}) {
      Case(json, kBackward, ampere_tile(32, 2, 16, 2), uniform_lengths(json.value("num_targets", false), rows)).check();
    }
  }
}

// All rows give what hstu_attention gives, to the bit.
TEST(EmulatedDeltaBackward, AllRowsAreHstuAttention) {
  Lengths lengths = jagged_lengths(true);
  lengths.other_rows["Lq"] = lengths.rows;
  const Json changes = {{"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}, {"max_attn_len", 9}};
  const Case whole(with(base(), changes), kBackward, ampere_tile(32, 2, 16, 2), lengths);
  const Case last(delta(changes), kBackward, ampere_tile(32, 2, 16, 2), lengths);
  HostCall expected = whole.call(), call = last.call();
  whole.launch(expected, 1);
  last.launch(call, 1);
  for (const std::string& name : whole.outputs()) EXPECT_EQ(call.bytes(name), expected.bytes(name)) << name;
}

// Rows before their sequence may hold anything.
TEST(EmulatedDeltaBackward, RowsBeforeASequenceAddNothing) {
  constexpr size_t kWidth = 2 * 32;
  const Case kernel(delta({{"attn_scale", "rows"}, {"rab_heads", 1}, {"num_softmax_heads", 1}}), kBackward,
                    ampere_tile(32, 2, 16, 2),
                    {.rows = {3, 0, 70}, .num_targets = {}, .max_seq_len = 80, .other_rows = {{"Lq", {5, 5, 5}}}});
  HostCall clean = kernel.call(), dirty = kernel.call();
  for (const size_t tensor : {size_t{0}, size_t{3}}) {  // q and dout
    std::vector<double>& reals = dirty.inputs()[tensor].tensor.reals;
    for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 2}, {5, 10}})
      std::fill(reals.begin() + begin * kWidth, reals.begin() + end * kWidth, std::numeric_limits<double>::quiet_NaN());
  }
  kernel.launch(clean, 1);
  kernel.launch(dirty, 1);
  for (const std::string& name : kernel.outputs()) EXPECT_EQ(clean.bytes(name), dirty.bytes(name)) << name;
}

TEST(EmulatedDeltaBackward, SenselessIndicesStayInBounds) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const Json changes = {{"num_targets", true}, {"max_attn_len", 9}, {"rab_heads", 1}, {"attn_scale", "rows"}};
  for (const bool jagged : {false, true}) {
    const Case kernel(
        delta(with(changes, {{"jagged_queries", jagged}})), kBackward, ampere_tile(32, 2, 16, 2),
        {.rows = {20, 30, 40}, .num_targets = {0, 0, 0}, .max_seq_len = 70, .other_rows = {{"Lq", {10, 10, 10}}}});
    const Signature signature = kernel.spec()->signature(kBackward);
    for (const char* name : {"seq_offsets", "seq_offsets_q"}) {
      if (find_argument(signature, name) < 0) continue;
      for (const std::vector<int64_t>& offsets :
           {std::vector<int64_t>{0, 500, 20, 90}, {-7, tiny, huge, 3}, {huge, 0, 0, 0}, {5, 5, 90, 80}}) {
        HostCall call = kernel.call();
        integers_of(call, signature, name) = offsets;
        integers_of(call, signature, "num_targets") = {huge, -3, tiny};
        expect_within_bounds(call, tensor_names(signature), [&](HostCall& ready) { kernel.launch_packed(ready, 1); });
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
