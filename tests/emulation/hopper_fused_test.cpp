// The fused backward kernels for Hopper, with the kernel that rounds their workspace, in emulation against the float64
// reference.
#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

KernelConfig fused(int64_t consumers, int64_t stages, int64_t blocks_per_sm = 1) {
  return hopper_tile("sm90_backward_fused", consumers, 64, stages, "persistent", blocks_per_sm);
}

// Tiles of 64 and 128 columns, one more or less; rows that begin and end within groups of 8.
Lengths lengths_of(bool targets) {
  Lengths lengths{.rows = {1, 65, 0, 200, 64, 127, 129}, .num_targets = {}, .max_seq_len = 200};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 64, 0, 70};
  return lengths;
}

void check(const Json& changes, const KernelConfig& config) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {}", json.dump(), describe(config)));
  Case(json, Direction::kBackward, config, lengths_of(json.value("num_targets", false))).check();
}

TEST(EmulatedFused, EveryShape) {
  check({{"dtype", "bf16"}}, fused(2, 2));
  check({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, fused(1, 3, 2));
  check({{"dtype", "bf16"}, {"attn_dim", 64}, {"hidden_dim", 40}}, fused(2, 4));
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 128}, {"heads", 1}, {"num_targets", true}}, fused(2, 3));
  check({{"dtype", "bf16"}, {"attn_dim", 96}, {"hidden_dim", 32}, {"heads", 1}}, fused(1, 2));
}

TEST(EmulatedFused, EveryMask) {
  for (const Json& mask : all_masks()) check(with(mask, {{"heads", 1}}), fused(2, 2));
}

// Two blocks of a multiprocessor sort 1024 sequences; of more, a list goes over all tiles there could be.
TEST(EmulatedFused, MoreSequencesThanAListSorts) {
  Lengths lengths{.rows = std::vector<int64_t>(1030, 0), .num_targets = {}, .max_seq_len = 70};
  for (size_t i = 0; i < lengths.rows.size(); i += 97) lengths.rows[i] = i % 2 == 0 ? 3 : 70;
  Case(base(), Direction::kBackward, fused(1, 2, 2), lengths).check();
}

TEST(EmulatedFused, SenselessIndicesStayInBounds) {
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(1, 2));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(2, 2));
}

TEST(EmulatedFused, ASequencesNumbersStayInIt) { check_that_numbers_stay_in_their_sequence(fused(2, 2)); }

}  // namespace
}  // namespace hstujit
