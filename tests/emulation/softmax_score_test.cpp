// Kernels of instances with softmax_score, and of those with softmax whose score reads operands, in emulation against
// the float64 reference.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

const Json kCap = {{"softmax_score", "4.0 * tanh(x / 4.0)"}};
const Json kAll = {{"num_softmax_heads", 2}, {"softmax_score", "x - 0.02 * (row - col) * (1.0 + head)"}};
const Json kRows = {{"operands", "t: row(grad), w: row(bf16, heads, grad), day: row(int64)"},
                    {"softmax_score", "x * t[col] + 0.5 * w[row] * tanh(w[col]) - 0.001 * abs(day[row] - day[col])"}};
const Json kSites = {
    {"operands", "by: table(99, heads, grad), all: table(61, grad), slope: head(grad), g: scalar(grad)"},
    {"softmax_score", "g * x + by[row - col + 40] + all[col - row + 30] - 0.02 * slope * (row - col)"}};
const Json kOthers = {{"operands", "own: sequence(grad), rel: pair(fp16, heads, grad)"},
                      {"softmax_score", "x * own + tanh(x) * rel[row, col]"}};
// What the other heads' score reads, beside softmax of S.
const Json kBeside = {{"heads", 3},
                      {"operands", "t: row(heads, grad), by: table(99, grad), own: sequence(grad), rel: pair(grad)"},
                      {"score", "silu(x + t[row] - t[col] + by[row - col + 40]) * own + 0.1 * rel[row, col]"}};
// What both read.
const Json kBoth = {{"heads", 3},
                    {"num_softmax_heads", 2},
                    {"operands", "t: row(grad), by: table(99, grad), own: sequence(grad), rel: pair(grad)"},
                    {"score", "silu(x + t[row] - t[col] + by[row - col + 40]) * own + 0.1 * rel[row, col]"},
                    {"softmax_score", "x * t[col] - by[row - col + 40] + 0.1 * own * (row - col) * rel[row, col]"}};
const Json kNothing = {{"mask", "col < row and row - col > 40"}};

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(with(base(), {{"num_softmax_heads", 1}}), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Lengths lengths{.rows = {1, 33, 0, 129, 64, 31}, .num_targets = {}, .max_seq_len = 130};
  if (json.value("num_targets", false)) lengths.num_targets = {1, 5, 0, 20, 16, 0};
  if (json.value("op", "") == "delta_hstu_attention") lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 0};
  Case(json, direction, config, lengths).check();
}

const std::vector<Json>& readers() {
  static const std::vector<Json> scores = {kRows, kSites, kOthers, kBeside, kBoth};
  return scores;
}

TEST(EmulatedSoftmaxScore, AmpereForward) {
  for (const char* dtype : {"bf16", "fp16", "fp32"})
    check(with(kCap, {{"dtype", dtype}}), Direction::kForward, ampere_tile(32, 2, 32, 2));
  check(with(kAll, kNothing), Direction::kForward, per_sequence(ampere_tile(32, 2, 32, 2)));
  check(with(kAll, {{"num_targets", true}, {"max_attn_len", 20}}), Direction::kForward, ampere_tile(64, 4, 64, 3));
  for (const Json& score : readers()) check(score, Direction::kForward, ampere_tile(32, 1, 32, 1));
  check(with(kAll, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}}), Direction::kForward,
        ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedSoftmaxScore, AmpereBackward) {
  for (const char* dtype : {"bf16", "fp16", "fp32"})
    check(with(kCap, {{"dtype", dtype}}), Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check(with(kAll, kNothing), Direction::kBackward, per_sequence(ampere_tile(32, 2, 16, 2)));
  check(with(kAll, {{"num_targets", true}, {"max_attn_len", 20}}), Direction::kBackward, ampere_tile(64, 4, 32, 2));
  check(with(kCap, {{"heads", 4}, {"num_softmax_heads", 3}, {"rab_heads", 2}, {"attn_scale", "rows"}}),
        Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedSoftmaxScore, GradientsOfWhatItReads) {
  for (const Json& score : readers()) check(score, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  for (const Json& score : {kRows, kSites, kBoth}) {
    check(with(score, {{"dtype", "fp32"}, {"attn_scale", "rows"}, {"num_targets", true}, {"adds_gradients", true}}),
          Direction::kBackward, ampere_tile(32, 2, 16, 2));
  }
  check(with(kSites, {{"num_softmax_heads", 2}, {"mask", "col < row and row - col > 40"}}), Direction::kBackward,
        ampere_tile(32, 2, 16, 2));
  // The sums of rows for the one factor do not lie where the statistics of rows do.
  check(with(kBoth, {{"attn_scale", "scalar"}, {"rab_heads", 1}}), Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

TEST(EmulatedSoftmaxScore, BesideDropout) {
  const Json dropout = {{"dropout", true}};
  check(with(kCap, dropout), Direction::kForward, ampere_tile(32, 2, 32, 2));
  check(with(kCap, with(dropout, {{"rab_heads", 1}})), Direction::kBackward, ampere_tile(32, 2, 16, 2));
  for (const Json& score : readers()) check(with(score, dropout), Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check(with(kAll, dropout), Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"));
}

TEST(EmulatedSoftmaxScore, HopperForward) {
  const auto tile = [](int64_t consumers, const char* schedule, bool ping_pong = false) {
    KernelConfig config = hopper_tile("sm90_forward", consumers, 64, 2, schedule);
    config.attention().ping_pong = ping_pong;
    return config;
  };
  check(kCap, Direction::kForward, tile(1, "grid"));
  check(with(kAll, {{"dtype", "fp16"}, {"hidden_dim", 64}}), Direction::kForward, tile(2, "persistent", true));
  check(with(kAll, kNothing), Direction::kForward, tile(1, "persistent"));
  check(with(kCap, {{"rab_heads", 1}, {"attn_scale", "rows"}, {"num_targets", true}}), Direction::kForward,
        tile(2, "persistent"));
  for (const Json& score : readers()) check(score, Direction::kForward, tile(2, "persistent"));
  check(with(kAll, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}}), Direction::kForward, tile(1, "grid"));
}

TEST(EmulatedSoftmaxScore, TwoPassBackward) {
  const auto tile = [](const char* schedule) { return hopper_tile("sm90_backward_twopass", 1, 64, 2, schedule); };
  check(kCap, Direction::kBackward, tile("grid"));
  check(with(kAll, kNothing), Direction::kBackward, tile("persistent"));
  check(with(kCap, {{"rab_heads", 1}, {"attn_scale", "rows"}, {"num_targets", true}}), Direction::kBackward,
        tile("persistent"));
  for (const Json& score : readers()) check(score, Direction::kBackward, tile("persistent"));
}

TEST(EmulatedSoftmaxScore, FusedBackward) {
  const auto tile = [](const char* schedule, int64_t consumers = 2) {
    return hopper_tile("sm90_backward_fused", consumers, 64, 2, schedule);
  };
  check(kCap, Direction::kBackward, tile("persistent"));
  check(with(kAll, {{"dtype", "fp16"}, {"hidden_dim", 64}}), Direction::kBackward, tile("semaphore"));
  check(with(kAll, kNothing), Direction::kBackward, tile("per_sequence"));
  for (const char* scale : {"rows", "scalar"}) {
    check(with(kCap, {{"rab_heads", 1}, {"attn_scale", scale}, {"num_targets", true}}), Direction::kBackward,
          tile("per_sequence"));
  }
  const char* const schedules[] = {"persistent", "semaphore", "per_sequence"};
  for (size_t i = 0; i < readers().size(); ++i) check(readers()[i], Direction::kBackward, tile(schedules[i % 3]));
  check(with(kBoth, {{"attn_scale", "scalar"}, {"rab_heads", 1}}), Direction::kBackward, tile("persistent"));
}

TEST(EmulatedSoftmaxScore, OtherConfigsAreRefused) {
  const OpSpecPtr spec = make_spec(with(with(base(), {{"num_softmax_heads", 1}, {"dtype", "bf16"}}), kSites));
  KernelConfig cluster = hopper_tile("sm90_forward", 2, 64, 2),
               sites = hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent");
  cluster.attention().head_cluster = 2;
  sites.attention().site_warps = 2;
  const auto refused = [&](Direction direction, const KernelConfig& config) {
    return emit_kernel(*spec, direction, config, *known_device("sm_90a")).status().message();
  };
  EXPECT_THAT(refused(Direction::kForward, cluster), testing::HasSubstr("heads with softmax take the whole score"));
  EXPECT_THAT(refused(Direction::kBackward, sites), testing::HasSubstr("pass on other numbers than dS"));
}

}  // namespace
}  // namespace hstujit
