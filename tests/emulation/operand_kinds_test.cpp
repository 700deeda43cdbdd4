// Kernels whose score reads an element of each sequence or pair, in emulation against the float64 reference: what knows
// which of the batch a sequence is, in every template, schedule and kind of mask.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

const Json kSequences = {{"operands", "own: sequence(grad), day: sequence(int32)"},
                         {"score", "silu(x + own * (row - col) * 0.02) + 0.001 * day * own"}};
const Json kPairs = {{"heads", 4},
                     {"operands", "rel: pair(bf16, heads=2, grad), each: pair(grad), own: pair(heads, fp16)"},
                     {"score", "silu(x + rel[row, col]) * each[row, col] + own[row, col] * tanh(x)"}};
const Json kContexts = {{"num_contexts", true}, {"num_targets", true}, {"max_attn_len", 20}};
const Json kIntervals = {{"attn_func", 3}};
const Json kLastRows = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}};

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(with(base(), changes.contains("score") ? Json::object() : kSequences), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Lengths lengths{.rows = {1, 65, 0, 140, 64}, .num_targets = {}, .max_seq_len = 140};
  if (json.value("num_targets", false)) lengths.num_targets = {1, 5, 0, 20, 64};
  if (json.value("num_contexts", false)) lengths.num_contexts = {0, 1, 7, 63, 1000};
  if (json["op"] == "delta_hstu_attention") lengths.other_rows["Lq"] = {1, 20, 3, 70, 64};
  Case(json, direction, config, lengths).check();
}

KernelConfig with_cluster(KernelConfig config) {
  config.attention().head_cluster = 2;
  return config;
}

TEST(EmulatedOperandKinds, SequencesOnAmpere) {
  for (const Json& mask : {Json::object(), kContexts, kIntervals}) {
    check(mask, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(mask, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  }
  check({{"adds_gradients", true}, {"rab_heads", 1}, {"attn_scale", "rows"}}, Direction::kBackward,
        per_sequence(ampere_tile(32, 2, 32, 2)));
  // The sums of rows for the one factor do not lie where those of sequences do, which are fewer.
  check({{"attn_scale", "scalar"}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check(kLastRows, Direction::kForward, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedOperandKinds, SequencesOnHopper) {
  check(Json::object(), Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"));
  check(kContexts, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"));
  check(kIntervals, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "persistent"));
  check(kLastRows, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"));
  check(Json::object(), Direction::kForward, with_cluster(hopper_tile("sm90_forward", 2, 64, 2, "grid")));
  check(Json::object(), Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent"));
  check(kContexts, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  check(kIntervals, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  const char* const schedules[] = {"persistent", "semaphore", "per_sequence"};
  const Json masks[] = {kContexts, kIntervals, {{"num_targets", true}}};
  for (size_t i = 0; i < 3; ++i)
    check(masks[i], Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, schedules[i]));
}

TEST(EmulatedOperandKinds, PairsOnAmpere) {
  check(kPairs, Direction::kForward, ampere_tile(32, 2, 32, 2));
  check(with(kPairs, kContexts), Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check(with(kPairs, {{"adds_gradients", true}, {"rab_heads", 1}, {"attn_scale", "rows"}, {"heads", 2}}),
        Direction::kBackward, per_sequence(ampere_tile(32, 2, 32, 2)));
  check(with(kPairs, kLastRows), Direction::kForward, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedOperandKinds, PairsOnHopper) {
  check(with(kPairs, kIntervals), Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "persistent"));
  check(with(kPairs, kLastRows), Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"));
  check({{"operands", "all: pair"}, {"score", "silu(x + all[row, col] * tanh(all[row, col]))"}}, Direction::kForward,
        with_cluster(hopper_tile("sm90_forward", 2, 64, 2, "grid")));
  check(kPairs, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent"));
  check(with(kPairs, {{"num_targets", true}}), Direction::kBackward,
        hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"));
}

// Every kind of operand in one score, beside a bias, with the special-function unit's functions.
TEST(EmulatedOperandKinds, AllAtOnce) {
  const Json all = {
      {"rab_heads", 1},
      {"num_targets", true},
      {"operands",
       "ts: row(int64), a: row(grad), age: table(37, grad), w: table(50, heads, grad), slope: head(grad), "
       "gain: scalar(grad), own: sequence(grad), rel: pair(grad)"},
      {"score",
       "x / (1.5 + sqrt(0.5 + abs(x))) + tanh(0.25 * a[row] * a[col] + "
       "age[int(log2(1.5 + abs(ts[row + 1] - ts[col])) * 2.3)] + w[row - col] * slope + own - "
       "log(2.0 + abs(rel[row, col]))) * gain"}};
  const auto fast = [](KernelConfig config) {
    config.attention().activation = "mufu";
    return config;
  };
  check(all, Direction::kForward, fast(ampere_tile(32, 2, 32, 2)));
  check(all, Direction::kBackward, fast(ampere_tile(32, 2, 16, 2)));
  check(all, Direction::kBackward, fast(hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent")));
}

// More sequences than a list sorts: entries are groups of neighbours.
TEST(EmulatedOperandKinds, GroupsOfSequences) {
  Lengths lengths{.rows = {}, .num_targets = {}, .max_seq_len = 70};
  for (int64_t i = 0; i < 2100; ++i) lengths.rows.push_back(i % 90 == 17 ? 70 : i % 45 == 3 ? 9 : 0);
  const Json json = with(with(base(), kSequences), {{"heads", 1}});
  Case(json, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "persistent"), lengths).check();
  Case(json, Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent"), lengths).check();
}

TEST(EmulatedOperandKinds, PackedTilesAreRefused) {
  KernelConfig config = hopper_tile("sm90_forward", 1, 64, 2, "persistent", 2);
  config.attention().pack_sequences = true;
  const OpSpecPtr spec = make_spec(with(base(), kSequences));
  const auto kernel = emit_kernel(*spec, Direction::kForward, config, *known_device("sm_90a"));
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.status().message().find("the score reads own of one sequence at a time"), std::string::npos);
}

}  // namespace
}  // namespace hstujit
