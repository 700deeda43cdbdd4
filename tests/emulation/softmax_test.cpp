// Kernels of instances of which some heads have softmax, or all, in emulation against the float64 reference.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

// One row, tiles of 16, 32 and 64 rows and one more or less, empty ones.
Lengths lengths_of(bool targets) {
  Lengths lengths{.rows = {1, 33, 0, 129, 64, 31}, .num_targets = {}, .max_seq_len = 130};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 16, 0};
  return lengths;
}

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(with(base(), {{"num_softmax_heads", 1}}), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Lengths lengths = lengths_of(json.value("num_targets", false));
  if (json.value("op", "") == "delta_hstu_attention") lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 0};
  Case(json, direction, config, lengths).check();
}

const std::vector<Json>& types_of_softmax() {
  static const std::vector<Json> types = {{{"dtype", "bf16"}},
                                          {{"dtype", "fp16"}, {"num_softmax_heads", 2}},
                                          {{"dtype", "fp32"}},
                                          {{"dtype", "fp32"}, {"precision", "ieee"}, {"num_softmax_heads", 2}}};
  return types;
}

TEST(EmulatedSoftmax, Forward) {
  for (const Json& type : types_of_softmax()) check(type, Direction::kForward, ampere_tile(32, 2, 32, 2));
  for (const Json& mask : mask_changes()) check(mask, Direction::kForward, ampere_tile(32, 1, 32, 1));
  check({{"num_contexts", false}, {"attn_dim", 40}, {"hidden_dim", 72}, {"alignment", 2}}, Direction::kForward,
        ampere_tile(64, 4, 64, 3));
  check(Json::object(), Direction::kForward, per_sequence(ampere_tile(32, 2, 32, 2)));
  check({{"mask", "col < row and row - col > 40"}}, Direction::kForward, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedSoftmax, Backward) {
  for (const Json& type : types_of_softmax()) check(type, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  for (const Json& mask : mask_changes()) check(mask, Direction::kBackward, ampere_tile(32, 1, 16, 1));
  check({{"attn_dim", 40}, {"hidden_dim", 72}, {"alignment", 2}}, Direction::kBackward, ampere_tile(64, 4, 32, 2));
  check(Json::object(), Direction::kBackward, per_sequence(ampere_tile(32, 2, 16, 2)));
  check({{"mask", "col < row and row - col > 40"}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedSoftmax, GradientsOfOperands) {
  const Json four = {{"heads", 4}, {"num_softmax_heads", 3}};
  for (const char* scale : {"none", "rows", "scalar"}) {
    const Json changes = with(four, {{"rab_heads", 2}, {"attn_scale", scale}});
    check(changes, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(changes, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  }
  check(with(four, {{"rab_heads", 2}, {"attn_scale", "rows"}, {"adds_gradients", true}, {"dtype", "fp32"}}),
        Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check({{"num_softmax_heads", 2}, {"attn_scale", "scalar"}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedSoftmax, TheLastRows) {
  for (const Json& mask : {Json::object(), Json{{"num_targets", true}, {"max_attn_len", 20}}}) {
    const Json delta = with(mask, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}});
    check(delta, Direction::kForward, ampere_tile(32, 2, 32, 2));
  }
}

TEST(EmulatedSoftmax, HopperForward) {
  const auto tile = [](int64_t consumers, const char* schedule, bool ping_pong = false) {
    KernelConfig config = hopper_tile("sm90_forward", consumers, 64, 2, schedule);
    config.attention().ping_pong = ping_pong;
    return config;
  };
  check(Json::object(), Direction::kForward, tile(1, "grid"));
  check({{"dtype", "fp16"}, {"num_softmax_heads", 2}, {"hidden_dim", 64}}, Direction::kForward, tile(2, "persistent"));
  check({{"num_targets", true}}, Direction::kForward, tile(2, "persistent", true));
  for (const Json& mask : mask_changes()) check(mask, Direction::kForward, tile(2, "persistent"));
  check({{"mask", "col < row and row - col > 40"}, {"num_softmax_heads", 2}}, Direction::kForward, tile(1, "grid"));
  check({{"rab_heads", 1}, {"attn_scale", "rows"}}, Direction::kForward, tile(2, "persistent"));
  check({{"op", "delta_hstu_attention"}, {"jagged_queries", true}}, Direction::kForward, tile(1, "grid"));
}

TEST(EmulatedSoftmax, TwoPassBackward) {
  const auto tile = [](const char* schedule) { return hopper_tile("sm90_backward_twopass", 1, 64, 2, schedule); };
  check(Json::object(), Direction::kBackward, tile("grid"));
  check({{"dtype", "fp16"}, {"num_softmax_heads", 2}, {"hidden_dim", 64}}, Direction::kBackward, tile("persistent"));
  for (const Json& mask : mask_changes()) check(mask, Direction::kBackward, tile("persistent"));
  check({{"mask", "col < row and row - col > 40"}, {"num_softmax_heads", 2}}, Direction::kBackward, tile("grid"));
  for (const char* scale : {"rows", "scalar"})
    check({{"rab_heads", 1}, {"attn_scale", scale}}, Direction::kBackward, tile("persistent"));
}

// Intervals of each head, or of both together.
TEST(EmulatedSoftmax, Intervals) {
  for (const Json& changes : {Json{{"attn_func", 3}, {"attn_func_heads", 2}, {"num_softmax_heads", 2}},
                              Json{{"attn_func", 9}, {"softmax_score", "x * (1.0 + head)"}}}) {
    check(changes, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(changes, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"));
    check(changes, Direction::kBackward, ampere_tile(32, 2, 16, 2));
    check(with(changes, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}}), Direction::kForward,
          hopper_tile("sm90_forward", 1, 64, 2));
  }
  check({{"attn_func", 3}, {"rab_heads", 1}, {"attn_scale", "rows"}, {"dropout", true}}, Direction::kBackward,
        ampere_tile(32, 2, 16, 2));
  check(
      {{"attn_func", 3}, {"operands", "t: row(grad), by: table(99, grad)"}, {"softmax_score", "x * t[col] + by[col]"}},
      Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

KernelConfig fused(int64_t consumers, int64_t stages, const char* schedule, int64_t blocks_per_sm = 1) {
  return hopper_tile("sm90_backward_fused", consumers, 64, stages, schedule, blocks_per_sm);
}

TEST(EmulatedSoftmax, FusedBackward) {
  check(Json::object(), Direction::kBackward, fused(2, 2, "persistent"));
  check({{"dtype", "fp16"}, {"num_softmax_heads", 2}, {"hidden_dim", 64}}, Direction::kBackward,
        fused(1, 3, "persistent", 2));
  check({{"num_softmax_heads", 2}, {"attn_dim", 64}, {"hidden_dim", 40}}, Direction::kBackward,
        fused(2, 3, "semaphore"));
  check({{"attn_dim", 128}, {"hidden_dim", 128}}, Direction::kBackward, fused(2, 2, "per_sequence"));
  check({{"num_softmax_heads", 2}, {"heads", 3}}, Direction::kBackward, fused(1, 2, "per_sequence", 2));
  check({{"mask", "col < row and row - col > 40"}, {"num_softmax_heads", 2}}, Direction::kBackward,
        fused(1, 2, "semaphore"));
  check({{"num_contexts", true}}, Direction::kBackward, fused(2, 2, "per_sequence"));
  for (const char* scale : {"rows", "scalar"}) {
    check({{"rab_heads", 1}, {"attn_scale", scale}}, Direction::kBackward, fused(2, 2, "persistent"));
    check({{"rab_heads", 2}, {"attn_scale", scale}}, Direction::kBackward, fused(2, 2, "semaphore"));
  }
}

TEST(EmulatedSoftmax, FusedBackwardOfEveryMask) {
  const char* const schedules[] = {"persistent", "semaphore", "per_sequence"};
  for (size_t i = 0; i < mask_changes().size(); ++i)
    check(mask_changes()[i], Direction::kBackward, fused(2, 2, schedules[i % 3]));
}

// Rows of one tile of the kernel in front, and one more or less: it has 256 of them.
TEST(EmulatedSoftmax, RowStatisticsOfSeveralTiles) {
  const Lengths lengths{.rows = {256, 1, 255, 0, 257, 65}, .num_targets = {}, .max_seq_len = 257};
  for (const Json& mask : {Json::object(), Json{{"causal", false}}}) {
    Case(with(with(base(), {{"num_softmax_heads", 1}}), mask), Direction::kBackward, fused(2, 2, "persistent"), lengths)
        .check();
  }
}

// Columns past a sequence's end are zero, and S of its rows far below that: P would be infinite there.
TEST(EmulatedSoftmax, BackwardOfLargeNegativeScores) {
  const Lengths lengths{.rows = {70}, .num_targets = {}, .max_seq_len = 70};
  const Json json = with(base(), {{"num_softmax_heads", 2}, {"causal", false}});
  for (const KernelConfig& config :
       {fused(2, 2, "persistent"), fused(2, 2, "semaphore"), fused(2, 2, "per_sequence"),
        hopper_tile("sm90_backward_twopass", 2, 64, 2, "persistent"), ampere_tile(32, 2, 16, 2)}) {
    const Case kernel(json, Direction::kBackward, config, lengths);
    HostCall call = kernel.call();
    const auto large = [](double x) { return 16 + std::round(8 * std::fabs(x)) / 8; };  // as 16 bits have it
    for (double& x : call.inputs()[0].tensor.reals) x = large(x);
    for (double& x : call.inputs()[1].tensor.reals) x = -large(x);
    kernel.launch(call, 1);
    EXPECT_EQ(call.mistakes(), "") << describe(config);
  }
}

TEST(EmulatedSoftmax, FusedBackwardStaysInBounds) {
  const Json all = {{"num_softmax_heads", 2}};
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(2, 2, "persistent"), 1, all);
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(1, 2, "per_sequence"), 1, all);
  for (const char* schedule : {"persistent", "semaphore"})
    check_that_numbers_stay_in_their_sequence(fused(2, 2, schedule), {{"num_softmax_heads", 1}});
}

// A config of what has no softmax says so.
TEST(EmulatedSoftmax, OtherConfigsAreRefused) {
  const OpSpecPtr spec = make_spec(with(base(), {{"num_softmax_heads", 1}}));
  const auto refused = [&](Direction direction, const KernelConfig& config) {
    return emit_kernel(*spec, direction, config, *known_device("sm_90a")).status().message();
  };
  KernelConfig packed = hopper_tile("sm90_forward", 1, 64, 2, "persistent"),
               split = hopper_tile("sm90_forward", 1, 64, 2);
  packed.attention().pack_sequences = split.attention().split_kv = true;
  EXPECT_THAT(refused(Direction::kForward, packed), testing::HasSubstr("rows of packed tiles have no softmax"));
  EXPECT_THAT(refused(Direction::kForward, split), testing::HasSubstr("split_kv true; allowed: false"));
  const OpSpecPtr intervals = make_spec(with(base(), {{"num_softmax_heads", 1}, {"attn_func", 3}}));
  for (const KernelConfig& config :
       {fused(2, 2, "persistent"), hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent")}) {
    EXPECT_THAT(emit_kernel(*intervals, Direction::kBackward, config, *known_device("sm_90a")).status().message(),
                testing::HasSubstr("attn_func 3 with num_softmax_heads 1; allowed: one of them"));
  }
}

}  // namespace
}  // namespace hstujit
