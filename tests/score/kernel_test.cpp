// Attention with a score that depends on positions, on the host and in emulation of every template, against float64.
#include "compiler/host/kernel.h"

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "tests/emulation/attention_case.h"
#include "tests/score/positional_score.h"

namespace hstujit {
namespace {

// One row, tiles of 16, 32 and 64 rows and one more or less, empty ones.
Lengths lengths_of(int64_t max) {
  return {.rows = {1, 33, 0, max, 64, 31}, .num_targets = {1, 5, 0, 21, 16, 0}, .max_seq_len = max};
}

// The last rows of each sequence, once more than there are.
Lengths last_rows_of(int64_t max) {
  Lengths lengths = lengths_of(max);
  lengths.other_rows["Lq"] = {1, 20, 3, 33, 64, 40};
  return lengths;
}

const Json kTargets = {{"num_targets", true}};
const Json kBias = {{"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}};
const Json kExact = {{"dtype", "fp32"}, {"precision", "ieee"}};
const Json kLastRows = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}};

void check_host(const Json& changes, Direction direction, const Lengths& lengths) {
  const OpSpecPtr spec = make_spec(with(with(base(), kExact), changes));
  SCOPED_TRACE(spec->to_json().dump());
  const auto context = make_context();
  prepare_context(*context);
  const auto kernel =
      JitKernel::create(*positional_module(*context, *spec), spec, direction, 2, kept_objects(*spec, direction));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  HostCall call(spec, lengths, 7, 0, direction);
  call.pack_inputs();
  const Status status = kernel->launch(call.values().data(), call.values().size());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(positional_mistakes(call, *spec, direction), "");
}

TEST(PositionalScore, OnTheHost) {
  for (const Json& changes : {kTargets, kBias, with(kTargets, {{"causal", false}, {"max_attn_len", 9}})}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      check_host(changes, direction, lengths_of(300));
    }
  }
  check_host(kLastRows, Direction::kForward, last_rows_of(300));
}

void check(const Json& changes, Direction direction, KernelConfig config, const Lengths& lengths,
           unsigned cluster = 1) {
  const OpSpecPtr spec = make_spec(with(base(), changes));
  if (config.skeleton.empty())
    config.skeleton = direction == Direction::kForward ? "attention/sm80_forward" : "attention/sm80_backward";
  config.attention().activation = "accurate";
  SCOPED_TRACE(spec->to_json().dump() + " " + describe(config));
  auto emitted = emit_positional(*spec, direction, config, *known_device("sm_90a"));
  // As in Case.
  while (!emitted.ok() && config.attention().blocks_per_sm < AttentionConfig::kMaxBlocksPerSm) {
    ++config.attention().blocks_per_sm;
    emitted = emit_positional(*spec, direction, config, *known_device("sm_90a"));
  }
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  HostCall call(spec, lengths, 7, 16, direction);
  call.pack_inputs();
  kernel.launch(call.values(), 1, cluster);
  EXPECT_EQ(positional_mistakes(call, *spec, direction), "");
}

TEST(PositionalScore, Ampere) {
  for (const Json& type : {kExact, Json{{"dtype", "bf16"}}}) {
    check(with(kTargets, type), Direction::kForward, ampere_tile(32, 2, 32, 2), lengths_of(71));
    check(with(kLastRows, type), Direction::kForward, ampere_tile(32, 2, 32, 2), last_rows_of(71));
    check(with(kTargets, type), Direction::kBackward, ampere_tile(32, 2, 32, 2), lengths_of(71));
    check(with(kBias, type), Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(71));
  }
  // Sums of dk and dv are roles of their own.
  check(with(kTargets, {{"attn_dim", 256}, {"hidden_dim", 256}}), Direction::kBackward, ampere_tile(32, 2, 16, 1),
        lengths_of(71));
}

TEST(PositionalScore, HopperForward) {
  for (const char* schedule : {"grid", "persistent"})
    check(kBias, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, schedule), lengths_of(200));
  // Masks that are looked at in pieces.
  check(with(kTargets, {{"max_attn_len", 20}, {"contextual_seq_len", 6}}), Direction::kForward,
        hopper_tile("sm90_forward", 2, 64, 2), lengths_of(200));
  KernelConfig split = hopper_tile("sm90_forward", 1, 64, 2);
  split.attention().split_kv = true;
  for (const unsigned cluster : {1, 3}) {
    check(kTargets, Direction::kForward, split, lengths_of(200), cluster);
    check(kLastRows, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2), last_rows_of(200), cluster);
  }
}

TEST(PositionalScore, HopperForwardOfPackedSequences) {
  KernelConfig packed = hopper_tile("sm90_forward", 1, 64, 2, "persistent", 2);
  packed.attention().pack_sequences = true;
  check(kTargets, Direction::kForward, packed, lengths_of(200));
  // Masks that are looked at in pieces.
  check(with(kTargets, {{"max_attn_len", 20}, {"contextual_seq_len", 6}}), Direction::kForward, packed,
        lengths_of(200));
}

TEST(PositionalScore, HopperBackward) {
  for (const char* schedule : {"grid", "persistent"})
    check(kBias, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, schedule), lengths_of(200));
  // Sums of dk and dv are roles of their own.
  check(with(kTargets, {{"attn_dim", 192}, {"hidden_dim", 256}}), Direction::kBackward,
        hopper_tile("sm90_backward_twopass", 2, 32, 2), lengths_of(200));
}

TEST(PositionalScore, HopperBackwardOfPackedSequences) {
  KernelConfig packed = hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent", 2);
  packed.attention().pack_sequences = true;
  check(kTargets, Direction::kBackward, packed, lengths_of(200));
}

TEST(PositionalScore, HopperBackwardFused) {
  for (const char* schedule : {"persistent", "semaphore", "per_sequence"})
    check(kBias, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, schedule), lengths_of(200));
}

}  // namespace
}  // namespace hstujit
