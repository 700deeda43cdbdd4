// Kernels of instances with dropout, in emulation against the float64 reference.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

// One row, tiles of 16, 32 and 64 rows and one more or less, empty ones.
Lengths lengths_of(const Json& json) {
  Lengths lengths{.rows = {1, 33, 0, 129, 64, 31}, .num_targets = {}, .max_seq_len = 130};
  if (json.value("num_targets", false)) lengths.num_targets = {1, 5, 0, 20, 16, 0};
  if (json.value("num_contexts", false)) lengths.num_contexts = {0, 7, 0, 3, 64, 1};
  return lengths;
}

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(with(base(), {{"dropout", true}}), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Case(json, direction, config, lengths_of(json)).check();
}
void check_forward(const Json& changes, const KernelConfig& config) { check(changes, Direction::kForward, config); }
void check_backward(const Json& changes, const KernelConfig& config) { check(changes, Direction::kBackward, config); }

// Windows, so that what is walked does not begin at the first column.
const Json kWindow = {{"max_attn_len", 20}, {"min_full_attn_seq_len", 5}};
const Json kSoftmax = {{"num_softmax_heads", 1}};

TEST(EmulatedDropout, AmpereForward) {
  check_forward({{"dtype", "bf16"}}, ampere_tile(32, 2, 32, 2));
  check_forward(with(kWindow, {{"dtype", "fp16"}, {"seed_tensor", true}}), ampere_tile(64, 2, 16, 2));
  check_forward({{"dtype", "fp32"}, {"num_targets", true}}, ampere_tile(32, 1, 64, 1));
  check_forward({{"dtype", "fp32"}, {"precision", "ieee"}, {"attn_scale", "rows"}}, ampere_tile(32, 2, 32, 2));
  check_forward(with(kWindow, kSoftmax), per_sequence(ampere_tile(32, 2, 32, 2)));
  check_forward({{"num_softmax_heads", 2}, {"rab_heads", 1}}, ampere_tile(64, 4, 64, 3));
}

TEST(EmulatedDropout, AmpereBackward) {
  check_backward({{"dtype", "bf16"}}, ampere_tile(32, 2, 16, 2));
  check_backward(with(kWindow, {{"dtype", "fp16"}, {"seed_tensor", true}}), ampere_tile(64, 2, 32, 2));
  check_backward({{"dtype", "fp32"}, {"num_targets", true}}, ampere_tile(32, 1, 16, 1));
  check_backward({{"dtype", "fp32"}, {"precision", "ieee"}, {"attn_scale", "rows"}}, ampere_tile(32, 2, 16, 2));
  check_backward(with(kWindow, kSoftmax), per_sequence(ampere_tile(32, 2, 16, 2)));
  check_backward({{"num_softmax_heads", 2}, {"rab_heads", 1}}, ampere_tile(64, 4, 32, 2));
}

TEST(EmulatedDropout, HopperForward) {
  const auto tile = [](int64_t consumers, int64_t block_n, const char* schedule) {
    return hopper_tile("sm90_forward", consumers, block_n, 2, schedule);
  };
  check_forward({{"dtype", "bf16"}}, tile(1, 64, "grid"));
  check_forward(with(kWindow, {{"dtype", "fp16"}, {"hidden_dim", 64}}), tile(2, 80, "persistent"));
  check_forward({{"num_targets", true}, {"attn_scale", "scalar"}}, tile(2, 96, "persistent"));
  check_forward({{"full_mask", true}, {"rab_heads", 2}, {"attn_scale", "rows"}, {"seed_tensor", true}},
                tile(2, 128, "grid"));
  check_forward({{"num_softmax_heads", 2}, {"rab_heads", 1}}, tile(2, 64, "persistent"));
  check_forward(with(kWindow, kSoftmax), tile(1, 128, "grid"));
  check_forward({{"attn_func", 3}}, tile(1, 64, "grid"));
  KernelConfig split = tile(1, 64, "grid");
  split.attention().split_kv = true;
  const Json json = with(with(base(), kWindow), {{"dropout", true}});
  Case(json, Direction::kForward, split, {.rows = {200}, .num_targets = {}, .max_seq_len = 200}, 2).check();
}

TEST(EmulatedDropout, TwoPassBackward) {
  const auto tile = [](int64_t block_n, const char* schedule) {
    return hopper_tile("sm90_backward_twopass", 1, block_n, 2, schedule);
  };
  check_backward({{"dtype", "bf16"}}, tile(64, "grid"));
  check_backward(with(kWindow, {{"dtype", "fp16"}, {"hidden_dim", 64}}), tile(48, "persistent"));
  check_backward({{"num_targets", true}, {"attn_scale", "rows"}, {"rab_heads", 1}}, tile(32, "persistent"));
  check_backward(with(kWindow, kSoftmax), tile(64, "grid"));
  check_backward({{"attn_func", 3}, {"attn_dim", 256}, {"hidden_dim", 256}, {"heads", 1}}, tile(16, "grid"));
}

TEST(EmulatedDropout, FusedBackward) {
  const auto tile = [](int64_t consumers, const char* schedule) {
    return hopper_tile("sm90_backward_fused", consumers, 64, 2, schedule);
  };
  check_backward({{"dtype", "bf16"}}, tile(2, "persistent"));
  check_backward(with(kWindow, {{"dtype", "fp16"}, {"seed_tensor", true}}), tile(1, "semaphore"));
  check_backward({{"num_targets", true}, {"attn_scale", "rows"}}, tile(2, "per_sequence"));
  check_backward({{"attn_scale", "scalar"}, {"rab_heads", 2}}, tile(2, "semaphore"));
  check_backward(with(kWindow, kSoftmax), tile(2, "persistent"));
  check_backward({{"num_softmax_heads", 2}, {"rab_heads", 1}, {"attn_scale", "rows"}}, tile(2, "per_sequence"));
  check_backward({{"attn_func", 3}}, tile(2, "persistent"));
}

// Gradients of what the score reads follow from dS.
TEST(EmulatedDropout, GradientsOfWhatTheScoreReads) {
  const Json rows = {{"operands", "w: row(grad), bend: row(heads, grad)"}, {"score", "silu(x * w[row] + bend[col])"}};
  const Json sites = {{"operands", "pos: table(99, grad), slope: head(grad), gain: scalar(grad)"},
                      {"score", "silu(x + pos[col - row + 49] - 0.01 * slope * (row - col) + gain)"}};
  const Json pairs = {{"operands", "rel: pair(heads, grad)"}, {"score", "silu(x) * rel[row, col]"}};
  for (const Json& mask : {Json::object(), kWindow}) {
    check_backward(with(rows, mask), ampere_tile(32, 2, 16, 2));
    check_backward(with(sites, mask), ampere_tile(32, 2, 16, 2));
    check_backward(with(pairs, mask), ampere_tile(32, 2, 16, 2));
  }
  check_backward(with(rows, {{"dtype", "fp32"}, {"attn_scale", "rows"}}), ampere_tile(32, 2, 16, 2));
  KernelConfig fused = hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent");
  fused.attention().site_warps = 2;
  check_backward(with(sites, {{"dtype", "bf16"}, {"attn_scale", "rows"}}), fused);
}

// The share of pairs that are dropped is the ratio, as 8 bits have it; a ratio of 0 drops nothing, of 1 all.
TEST(EmulatedDropout, SomeArgumentsOfALaunch) {
  constexpr int64_t kRows = 130;
  const Lengths lengths{.rows = {kRows}, .num_targets = {}, .max_seq_len = kRows};
  const Json json = with(base(), {{"dropout", true}, {"full_mask", true}, {"score", "identity"}});
  const Case kernel(json, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2), lengths);
  const Signature signature = kernel.spec()->signature(Direction::kForward);
  const auto at = [&](const char* name) { return static_cast<size_t>(find_argument(signature, name)); };
  std::vector<std::vector<double>> results;
  for (const auto& [ratio, seed, offset] : {std::tuple{0.0, 5.0, 0.0},
                                            {1.0, 5.0, 0.0},
                                            {0.4, 5.0, 0.0},
                                            {0.4, 6.0, 0.0},
                                            {0.4, 5.0, 1.0},
                                            {0.4, -1.0, -9.0}}) {
    HostCall call = kernel.call();
    call.inputs()[at("dropout_ratio")].scalar = ratio;
    call.inputs()[at("seed")].scalar = seed;
    call.inputs()[at("offset")].scalar = offset;
    // Each P is 1 over the number of rows, and so an element of the result the share of what is kept, over what it is.
    for (const char* name : {"q", "k", "v"}) {
      std::vector<double>& reals = call.inputs()[at(name)].tensor.reals;
      std::fill(reals.begin(), reals.end(), 1.0);
    }
    kernel.launch(call, 1);
    results.push_back(call.read("out").reals);
    double mean = 0;
    for (const double x : results.back()) mean += x / static_cast<double>(results.back().size());
    const double of_all = static_cast<double>(kRows) / static_cast<double>(kRows);
    if (ratio == 1) {
      EXPECT_EQ(mean, 0);
    } else {
      EXPECT_NEAR(mean, of_all, ratio == 0 ? 4e-3 : 2e-2) << ratio << " " << seed;
    }
  }
  for (size_t i = 3; i < results.size(); ++i) EXPECT_NE(results[2], results[i]) << i;
}

// Packed tiles have rows of several sequences.
TEST(EmulatedDropout, OtherConfigsAreRefused) {
  const OpSpecPtr spec = make_spec(with(base(), {{"dropout", true}}));
  KernelConfig packed = hopper_tile("sm90_forward", 1, 64, 2, "persistent");
  packed.attention().pack_sequences = true;
  const std::string refused =
      emit_kernel(*spec, Direction::kForward, packed, *known_device("sm_90a")).status().message();
  EXPECT_THAT(refused, testing::HasSubstr("dropout draws for blocks of 16 rows of one sequence"));
}

}  // namespace
}  // namespace hstujit
