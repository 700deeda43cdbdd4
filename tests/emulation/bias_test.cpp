// Kernels of instances with a bias (rab) and with factors of the scores (attn_scale), of every template, in emulation
// against the float64 reference.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

// One row, tiles of 16, 32 and 64 rows and one more or less, empty ones; of an odd number, whose rows of the bias have
// a last element without a neighbour.
Lengths lengths_of(bool targets, int64_t max = 71) {
  Lengths lengths{.rows = {1, 33, 0, max, 64, 31}, .num_targets = {}, .max_seq_len = max};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 16, 0};
  return lengths;
}

KernelConfig ampere(int64_t block_m = 32, int64_t warps = 2, int64_t block_n = 32, int64_t stages = 2) {
  return ampere_tile(block_m, warps, block_n, stages);
}

void check(const Json& changes, Direction direction, const KernelConfig& config, int64_t max = 71,
           unsigned cluster = 1) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Case(json, direction, config, lengths_of(json.value("num_targets", false), max), cluster).check();
}

const Json kShared = {{"rab_heads", 1}};
const Json kOwn = {{"rab_heads", 2}};
const Json kRows = {{"attn_scale", "rows"}};
const Json kScalar = {{"attn_scale", "scalar"}};
const Json kBoth = {{"rab_heads", 1}, {"attn_scale", "rows"}};
const Json kMasked = {{"num_targets", true}, {"contextual_seq_len", 6}};

const std::vector<Json>& all_types() {
  static const std::vector<Json> types = {
      {{"dtype", "bf16"}}, {{"dtype", "fp16"}}, {{"dtype", "fp32"}}, {{"dtype", "fp32"}, {"precision", "ieee"}}};
  return types;
}

TEST(EmulatedBias, AmpereForward) {
  for (const Json& type : all_types()) check(with(type, kBoth), Direction::kForward, ampere());
  check(with(kOwn, kMasked), Direction::kForward, ampere());
  check(kScalar, Direction::kForward, ampere());
  check(with(kOwn, kRows), Direction::kForward, per_sequence(ampere()));
  // Blocks of columns that would begin at odd ones, and pairs that no load takes together.
  check(with(kOwn, {{"max_attn_len", 20}}), Direction::kForward, ampere());
  check(with(kOwn, {{"alignment", 2}, {"attn_dim", 40}}), Direction::kForward, ampere());
}

TEST(EmulatedBias, AmpereBackward) {
  for (const Json& type : all_types()) check(with(type, kBoth), Direction::kBackward, ampere());
  check(with(kOwn, kMasked), Direction::kBackward, ampere());
  check(with(with(kOwn, kScalar), {{"max_attn_len", 20}}), Direction::kBackward, ampere());
  for (const int64_t warps : {1, 2}) {
    check(with(kOwn, kRows), Direction::kBackward, per_sequence(ampere(32, warps)));
    check(with(kShared, kScalar), Direction::kBackward, per_sequence(ampere(32, warps)));
  }
}

TEST(EmulatedBias, GradientsThatAreAddedToOthers) {
  const Json adding = {{"adds_gradients", true}};
  for (const Json& type : all_types()) check(with(with(type, kBoth), adding), Direction::kBackward, ampere());
  check(with(with(kOwn, kScalar), with(kMasked, adding)), Direction::kBackward, ampere());
  check(with(with(kOwn, {{"alignment", 2}, {"attn_dim", 40}}), adding), Direction::kBackward, ampere());
}

// Where the sums lie in what they are added to, as steps of a program have them, the bits are the same.
TEST(EmulatedBias, GradientsThatAreAddedInPlace) {
  for (const Json& scale : {kRows, kScalar}) {
    const Json json = with(with(with(base(), kOwn), scale), {{"adds_gradients", true}});
    const Case kernel(json, Direction::kBackward, ampere(), lengths_of(false));
    HostCall apart = kernel.call(), in_place = kernel.call();
    kernel.launch(apart, 1);
    in_place.pack_inputs();
    for (const std::string name : {"drab", "dattn_scale"})
      in_place.value(name).data = in_place.value(name + "_before").data;
    kernel.launch_packed(in_place, 2);
    for (const std::string name : {"drab", "dattn_scale"})
      EXPECT_EQ(apart.bytes(name), in_place.bytes(name + "_before"));
  }
}

TEST(EmulatedBias, HopperForward) {
  check(kBoth, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2), 200);
  check(with(kOwn, {{"dtype", "fp16"}}), Direction::kForward, hopper_tile("sm90_forward", 2, 64, 3, "persistent"), 200);
  check(with(with(kBoth, kMasked), {{"max_attn_len", 20}}), Direction::kForward,
        hopper_tile("sm90_forward", 2, 64, 2, "persistent"), 201);
  check(with(kScalar, kMasked), Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2), 200);
}

TEST(EmulatedBias, HopperForwardInClusters) {
  KernelConfig config = hopper_tile("sm90_forward", 1, 64, 2);
  config.attention().split_kv = true;
  check(kBoth, Direction::kForward, config, 201, 3);
  check(with(with(kBoth, kMasked), {{"max_attn_len", 21}}), Direction::kForward, config, 201, 2);
}

TEST(EmulatedBias, OfTheLastRows) {
  KernelConfig config = hopper_tile("sm90_forward", 1, 64, 2);
  Lengths lengths = lengths_of(true, 200);
  lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 40};
  const Json json =
      with(with(base(), kBoth), {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}});
  for (const unsigned cluster : {1, 3}) Case(json, Direction::kForward, config, lengths, cluster).check();
  Case(json, Direction::kForward, ampere(), lengths).check();
}

TEST(EmulatedBias, HopperBackward) {
  for (const char* schedule : {"grid", "persistent"}) {
    check(kBoth, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, schedule), 200);
  }
  check(with(with(kOwn, kScalar), with(kMasked, {{"dtype", "fp16"}})), Direction::kBackward,
        hopper_tile("sm90_backward_twopass", 1, 48, 3, "persistent", 2), 201);
  check(with(kBoth, {{"max_attn_len", 21}, {"attn_dim", 192}, {"hidden_dim", 256}}), Direction::kBackward,
        hopper_tile("sm90_backward_twopass", 2, 32, 2), 71);
}

TEST(EmulatedBias, HopperBackwardFused) {
  check(kBoth, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent"), 200);
  check(with(with(kOwn, kScalar), with(kMasked, {{"dtype", "fp16"}, {"attn_dim", 64}})), Direction::kBackward,
        hopper_tile("sm90_backward_fused", 1, 64, 3, "persistent", 2), 201);
  check(kRows, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent"), 200);
  check(kBoth, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"), 200);
  check(kBoth, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "per_sequence"), 200);
}

// CTAs with other columns, tiles that nobody sees among others, and chunks that are not full.
TEST(EmulatedBias, HopperGradientsOfManyColumns) {
  check(with(kShared, {{"attn_dim", 72}, {"hidden_dim", 136}, {"max_attn_len", 40}}), Direction::kBackward,
        hopper_tile("sm90_backward_twopass", 2, 64, 2), 600);
  check(with(kOwn, {{"adds_gradients", true}}), Direction::kBackward,
        hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent"), 520);
}

// Widths of several chunks, and of chunks that are not full.
TEST(EmulatedBias, GradientsOfEveryWidth) {
  const auto check_width = [](const Json& type, int attn, int hidden) {
    check(with(with(kBoth, type), {{"attn_dim", attn}, {"hidden_dim", hidden}, {"heads", 1}}), Direction::kBackward,
          ampere(32, 2, 16, 1));
  };
  for (const Json& type : all_types()) check_width(type, 72, 8);
  check_width({{"dtype", "bf16"}}, 8, 256);
  check_width({{"dtype", "fp32"}}, 8, 136);
}

// Sequences that are longer than the launch says, too: the bias has no elements for them.
TEST(EmulatedBias, SenselessIndicesStayInBounds) {
  const Json rows = {{"rab_heads", 1}, {"attn_scale", "rows"}}, scalar = {{"rab_heads", 2}, {"attn_scale", "scalar"}};
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    check_that_senseless_indices_stay_in_bounds(direction, ampere(32, 2, 16, 2), 1, rows);
  }
  check_that_senseless_indices_stay_in_bounds(Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"),
                                              1, scalar);
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 32, 2), 1,
                                              scalar);
  for (const char* schedule : {"persistent", "per_sequence"}) {
    check_that_senseless_indices_stay_in_bounds(Direction::kBackward,
                                                hopper_tile("sm90_backward_fused", 2, 64, 2, schedule), 1, rows);
  }
}

// NaN of a bias and of factors where no pair is: of rows and columns behind a sequence's last, and of masked ones.
TEST(EmulatedBias, WhatNoPairHasIsNotSeen) {
  for (const KernelConfig& config : {ampere(), hopper_tile("sm90_backward_twopass", 2, 64, 2),
                                     hopper_tile("sm90_backward_fused", 2, 64, 2, "persistent")}) {
    const Lengths lengths = lengths_of(false, 72);
    const Case kernel(with(base(), kBoth), Direction::kBackward, config, lengths);
    HostCall clean = kernel.call(), dirty = kernel.call();
    const auto rab = static_cast<size_t>(find_argument(kernel.spec()->signature(Direction::kBackward), "rab"));
    HostTensor& bias = dirty.inputs()[rab].tensor;
    for (size_t i = 0; i < bias.reals.size(); ++i) {
      const int64_t n = lengths.rows[i / (72 * 72)], row = static_cast<int64_t>(i / 72 % 72),
                    column = static_cast<int64_t>(i % 72);
      if (row >= n || column > row) bias.reals[i] = std::numeric_limits<double>::quiet_NaN();
    }
    dirty.add_rows(3);  // whose factors are anything
    clean.add_rows(3);
    kernel.launch(clean, 1);
    kernel.launch(dirty, 1);
    for (const std::string& name : kernel.outputs()) {
      const HostTensor a = clean.read(name), b = dirty.read(name);
      for (size_t i = 0; i < a.reals.size(); ++i) ASSERT_NEAR(a.reals[i], b.reals[i], 1e-2) << name << " " << i;
    }
  }
}

TEST(EmulatedBias, ASequencesNumbersStayInIt) {
  check_that_numbers_stay_in_their_sequence(ampere(), kBoth);
  check_that_numbers_stay_in_their_sequence(hopper_tile("sm90_backward_twopass", 2, 64, 2), kBoth);
}

// Nobody asks for them: then there is one kernel, and nothing else is written.
TEST(EmulatedBias, GradientsThatNobodyWants) {
  check(with(with(kOwn, kScalar), {{"drab", false}, {"dattn_scale", false}}), Direction::kBackward, ampere());
  check(with(with(kOwn, kRows), {{"drab", false}}), Direction::kBackward,
        hopper_tile("sm90_backward_twopass", 1, 32, 2));
}

}  // namespace
}  // namespace hstujit
