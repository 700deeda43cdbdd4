// The sm80 kernels of attention, both directions, and the backward kernels for Hopper, in emulation against the float64
// reference.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

// One row, tiles of 16 and 32 rows or columns and one more or less, empty ones.
Lengths lengths_of(bool targets) {
  Lengths lengths{.rows = {1, 33, 0, 70, 16, 31}, .num_targets = {}, .max_seq_len = 70};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 16, 0};
  return lengths;
}

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Case(json, direction, config, lengths_of(json.value("num_targets", false))).check();
}

const std::vector<Json>& all_types() {
  static const std::vector<Json> types = {
      {{"dtype", "bf16"}}, {{"dtype", "fp16"}}, {{"dtype", "fp32"}}, {{"dtype", "fp32"}, {"precision", "ieee"}}};
  return types;
}

TEST(EmulatedAttention, ForwardOfEveryType) {
  for (const Json& type : all_types()) check(type, Direction::kForward, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedAttention, ScoresKeepNan) {
  check_that_scores_keep_nan(Direction::kForward, ampere_tile(32, 2, 32, 2));
  check_that_scores_keep_nan(Direction::kBackward, ampere_tile(32, 2, 32, 2));
  check_that_scores_keep_nan(Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2));
  check_that_scores_keep_nan(Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  check_that_scores_keep_nan(Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent"));
}

TEST(EmulatedAttention, ForwardOfTheLastRows) {
  Lengths lengths = lengths_of(true);
  lengths.other_rows["Lq"] = {1, 20, 3, 33, 16, 40};
  for (const Json& type : all_types()) {
    const Json delta = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}};
    SCOPED_TRACE(type.dump());
    Case(with(with(base(), delta), type), Direction::kForward, ampere_tile(32, 2, 32, 2), lengths).check();
  }
}

TEST(EmulatedAttention, BackwardOfEveryType) {
  for (const Json& type : all_types()) {
    check(type, Direction::kBackward, ampere_tile(32, 2, 32, 2));
    check(with(type, {{"attn_dim", 16}, {"hidden_dim", 40}}), Direction::kBackward, ampere_tile(64, 2, 16, 1));
  }
}

TEST(EmulatedAttention, BackwardOfEveryMask) {
  for (const Json& mask : mask_changes()) check(mask, Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

// Widths that are no whole step of a matrix instruction, wide ones whose sums are split, and data of low alignment.
TEST(EmulatedAttention, BackwardOfOddWidths) {
  for (const auto& [attn, hidden] : {std::pair{8, 24}, std::pair{40, 8}}) {
    check({{"attn_dim", attn}, {"hidden_dim", hidden}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  }
  check({{"alignment", 2}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  check({{"alignment", 4}, {"dtype", "fp32"}}, Direction::kBackward, ampere_tile(32, 2, 16, 2));
}

// Heads of any width: elements one by one, pairs of them, and pieces of 8 bytes that are no whole piece of 16.
TEST(EmulatedAttention, AnyWidth) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const Json& type : all_types())
      check(with(type, {{"attn_dim", 25}, {"hidden_dim", 25}}), direction, ampere_tile(32, 2, 16, 2));
    check({{"attn_dim", 36}, {"hidden_dim", 20}, {"dtype", "fp16"}}, direction, ampere_tile(32, 2, 16, 2));
    check({{"attn_dim", 1}, {"hidden_dim", 3}}, direction, ampere_tile(32, 2, 16, 2));
    check({{"attn_dim", 50}, {"hidden_dim", 50}, {"alignment", 2}}, direction, ampere_tile(32, 2, 16, 2));
    check({{"attn_dim", 25}, {"hidden_dim", 25}}, direction, per_sequence(ampere_tile(16, 1, 16, 2)));
    check({{"attn_dim", 255}, {"hidden_dim", 250}, {"heads", 1}}, direction, ampere_tile(32, 2, 16, 1));
    check({{"attn_dim", 50}, {"hidden_dim", 50}, {"rab_heads", 1}, {"attn_scale", "rows"}}, direction,
          ampere_tile(32, 2, 16, 2));
  }
}

TEST(EmulatedAttention, BackwardAsItRunsUntuned) {
  for (const Json& type : {Json{{"dtype", "bf16"}}, Json{{"dtype", "fp32"}}}) {
    for (const int width : {64, 128}) {
      check(with(type, {{"attn_dim", width}, {"hidden_dim", width}, {"heads", 1}, {"num_targets", true}}),
            Direction::kBackward, {});
    }
  }
}

TEST(EmulatedAttention, BackwardOfWideRows) {
  check({{"attn_dim", 256}, {"hidden_dim", 256}, {"heads", 1}}, Direction::kBackward, ampere_tile(32, 2, 16, 1));
}

// One warp, as for the shortest sequences, and several.
TEST(EmulatedAttention, PerSequenceOfEveryMask) {
  for (const Json& mask : mask_changes()) {
    check(mask, Direction::kForward, per_sequence(ampere_tile(32, 2, 32, 2)));
    check(with(mask, {{"dtype", "fp16"}, {"attn_dim", 40}}), Direction::kBackward,
          per_sequence(ampere_tile(16, 1, 16, 2)));
  }
}

// Each sequence has its CTAs, whatever the number of groups of 32 and the size of the last one, and with equal lengths.
TEST(EmulatedAttention, PerSequenceOfManySequences) {
  for (const int64_t count : {1, 32, 33, 63, 65}) {
    Lengths lengths{.rows = {}, .num_targets = {}, .max_seq_len = 40};
    for (int64_t i = 0; i < count; ++i) lengths.rows.push_back(i % 5 == 0 ? i * 7 % 41 : i % 4);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      SCOPED_TRACE(fmt::format("{} sequences {}", count, to_string(direction)));
      Case(with(base(), {{"heads", 1}, {"attn_dim", 16}, {"hidden_dim", 16}}), direction,
           per_sequence(ampere_tile(16, 1, 16, 2)), lengths)
          .check();
    }
  }
}

TEST(EmulatedAttention, PerSequenceOfOddWidths) {
  check({{"attn_dim", 256}, {"hidden_dim", 256}, {"heads", 1}}, Direction::kBackward,
        per_sequence(ampere_tile(32, 2, 16, 1)));
  check({{"attn_dim", 40}, {"hidden_dim", 24}, {"alignment", 2}}, Direction::kBackward,
        per_sequence(ampere_tile(32, 1, 16, 2)));
}

TEST(EmulatedAttention, SenselessIndicesStayInBounds) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    check_that_senseless_indices_stay_in_bounds(direction, ampere_tile(32, 2, 16, 2));
    check_that_senseless_indices_stay_in_bounds(direction, per_sequence(ampere_tile(16, 1, 16, 2)));
  }
}

TEST(EmulatedAttention, ASequencesNumbersStayInIt) {
  check_that_numbers_stay_in_their_sequence(ampere_tile(32, 2, 32, 2));
  check_that_numbers_stay_in_their_sequence(per_sequence(ampere_tile(16, 1, 16, 2)));
}

KernelConfig backward_tile(int64_t consumers, int64_t block_n, int64_t stages, const char* schedule = "grid",
                           int64_t blocks_per_sm = 1) {
  return hopper_tile("sm90_backward_twopass", consumers, block_n, stages, schedule, blocks_per_sm);
}

void check_hopper(const Json& changes, const KernelConfig& config) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {}", json.dump(), describe(config)));
  Case(json, Direction::kBackward, config, hopper_lengths(json.value("num_targets", false))).check();
}

TEST(EmulatedHopper, BackwardOfEveryShape) {
  for (const char* schedule : {"grid", "persistent"}) {
    check_hopper({{"dtype", "bf16"}}, backward_tile(2, 64, 2, schedule));
    check_hopper({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, backward_tile(1, 48, 3, schedule, 2));
    check_hopper({{"dtype", "bf16"}, {"attn_dim", 40}, {"hidden_dim", 128}}, backward_tile(2, 32, 4, schedule));
    check_hopper({{"dtype", "bf16"}}, backward_tile(1, 32, 2, schedule, 3));
  }
}

// Sums that leave no registers for the products of the next tile, and widths whose last tile is half empty.
TEST(EmulatedHopper, BackwardOfWideRows) {
  for (const char* schedule : {"grid", "persistent"}) {
    check_hopper({{"attn_dim", 128}, {"hidden_dim", 128}, {"heads", 1}, {"num_targets", true}},
                 backward_tile(2, 64, 4, schedule));
  }
  check_hopper({{"attn_dim", 96}, {"hidden_dim", 96}, {"heads", 1}}, backward_tile(2, 64, 3));
}

TEST(EmulatedHopper, BackwardOfSumsThatAreRolesOfTheirOwn) {
  for (const char* schedule : {"grid", "persistent"}) {
    check_hopper({{"attn_dim", 192}, {"hidden_dim", 256}, {"heads", 1}, {"num_targets", true}},
                 backward_tile(2, 32, 2, schedule));
  }
  check_hopper({{"attn_dim", 256}, {"hidden_dim", 40}, {"heads", 1}}, backward_tile(2, 48, 2));
}

TEST(EmulatedHopper, BackwardOfEveryMask) {
  for (const Json& mask : mask_changes()) {
    const char* schedule = mask.contains("max_attn_len") ? "grid" : "persistent";
    check_hopper(with(mask, {{"heads", 1}}), backward_tile(2, 64, 2, schedule));
  }
}

TEST(EmulatedHopper, SenselessIndicesStayInBounds) {
  for (const char* schedule : {"grid", "persistent"}) {
    check_that_senseless_indices_stay_in_bounds(Direction::kBackward, backward_tile(1, 32, 2, schedule));
  }
}

// With a warp that zeroes what lies past a sequence's end, and without.
TEST(EmulatedHopper, ASequencesNumbersStayInIt) {
  check_that_numbers_stay_in_their_sequence(backward_tile(2, 64, 2));
  check_that_numbers_stay_in_their_sequence(backward_tile(1, 32, 2, "grid", 3));
  check_that_numbers_stay_in_their_sequence(backward_tile(2, 64, 2, "persistent"));
}

}  // namespace
}  // namespace hstujit
