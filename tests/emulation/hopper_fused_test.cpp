// The fused backward kernels for Hopper, with the kernel that rounds their workspace, in emulation against the float64
// reference.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

KernelConfig fused(int64_t consumers, int64_t stages, int64_t blocks_per_sm = 1, const char* schedule = "persistent") {
  return hopper_tile("sm90_backward_fused", consumers, 64, stages, schedule, blocks_per_sm);
}

void check(const Json& changes, const KernelConfig& config) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {}", json.dump(), describe(config)));
  Case(json, Direction::kBackward, config, hopper_lengths(json.value("num_targets", false))).check();
}

TEST(EmulatedFused, EveryShape) {
  check({{"dtype", "bf16"}}, fused(2, 2));
  check({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, fused(1, 3, 2));
  check({{"dtype", "bf16"}, {"attn_dim", 64}, {"hidden_dim", 40}}, fused(2, 4));
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 128}, {"heads", 1}, {"num_targets", true}}, fused(2, 3));
  check({{"dtype", "bf16"}, {"attn_dim", 96}, {"hidden_dim", 32}, {"heads", 1}}, fused(1, 2));
}

TEST(EmulatedFused, EveryMask) {
  for (const Json& mask : mask_changes()) check(with(mask, {{"heads", 1}}), fused(2, 2));
}

KernelConfig semaphore(int64_t consumers, int64_t stages) { return fused(consumers, stages, 1, "semaphore"); }

// Blocks run at the same time and one after the other, and results are the same bits.
TEST(EmulatedFused, EveryShapeWithSemaphores) {
  check({{"dtype", "bf16"}}, semaphore(2, 2));
  check({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, semaphore(1, 3));
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 128}, {"heads", 1}}, semaphore(2, 3));
}

TEST(EmulatedFused, EveryMaskWithSemaphores) {
  for (const Json& mask : mask_changes()) check(with(mask, {{"heads", 1}}), semaphore(2, 2));
}

// Tiles between which a Q tile has nothing of its own: the far columns that all rows see, and a window.
TEST(EmulatedFused, SemaphoresPassOverTilesThatAQTileDoesNotSee) {
  Lengths lengths{.rows = {700, 3, 450}, .num_targets = {}, .max_seq_len = 700};
  Case(with(base(), {{"heads", 1}, {"sla_k1", 12}, {"sla_k2", 3}}), Direction::kBackward, semaphore(1, 2), lengths)
      .check();
}

KernelConfig per_sequence(int64_t consumers, int64_t stages, int64_t blocks_per_sm = 1) {
  return fused(consumers, stages, blocks_per_sm, "per_sequence");
}

TEST(EmulatedFused, EveryShapePerSequence) {
  check({{"dtype", "bf16"}}, per_sequence(2, 2));
  check({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, per_sequence(1, 2, 2));
  check({{"dtype", "bf16"}, {"attn_dim", 64}, {"hidden_dim", 40}, {"heads", 1}}, per_sequence(1, 3));
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 128}, {"heads", 1}}, per_sequence(2, 2));
}

TEST(EmulatedFused, EveryMaskPerSequence) {
  for (const Json& mask : mask_changes()) check(with(mask, {{"heads", 1}}), per_sequence(2, 2));
}

Json columns(int64_t width) { return {{"heads", 1}, {"dtype", "bf16"}, {"attn_dim", width}, {"hidden_dim", width}}; }

// 64 columns leave room for the sums of rows up to 448 beside the operands; those of further rows are in global memory.
// 128 columns leave none.
TEST(EmulatedFused, SumsThatHaveNoRoomAreInGlobalMemory) {
  Lengths lengths{.rows = {700, 3, 450, 448, 449}, .num_targets = {}, .max_seq_len = 700};
  Case(with(base(), columns(64)), Direction::kBackward, per_sequence(2, 2), lengths).check();
  lengths.rows = {450, 3, 256, 257};
  Case(with(base(), columns(128)), Direction::kBackward, per_sequence(2, 2), lengths).check();
  for (const Json& mask : {Json{{"contextual_seq_len", 5}, {"max_attn_len", 70}}, Json{{"sla_k1", 12}, {"sla_k2", 3}},
                           Json{{"causal", false}}}) {
    Case(with(with(base(), columns(128)), mask), Direction::kBackward, per_sequence(2, 2), lengths).check();
  }
}

// Every other tile has its Q tiles backwards, of which a producer looks at 32 at a time.
TEST(EmulatedFused, BlocksBackwardsAcross32OfThem) {
  const Lengths lengths{.rows = {2200}, .num_targets = {}, .max_seq_len = 2200};
  const Json window = with(columns(128), {{"max_attn_len", 40}});
  Case(with(base(), window), Direction::kBackward, per_sequence(2, 2), lengths).check();
}

// Gradients of what is added to x, by warps beside the consumers: tables that lie on both sides of what is read, with
// heads and without, elements of heads, a scalar, and a mask of each kind. The last two have no table.
KernelConfig with_site_warps(KernelConfig config, int64_t warps) {
  config.attention().site_warps = warps;
  return config;
}

Json sites(const char* operands, const char* score) {
  return {{"dtype", "bf16"}, {"operands", operands}, {"score", score}};
}

const std::vector<Json>& instances_with_sites() {
  static const std::vector<Json> instances = {
      sites("ts: row(int64), pos: table(99, grad), age: table(9, grad)",
            "silu(x + pos[col - row + 49] + age[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)])"),
      sites("slope: head(grad), gain: scalar(grad), far: table(40, heads, bf16, grad)",
            "silu(x - 0.01 * slope * (row - col) + gain + far[row - col] * gain)"),
      sites("ts: row(int64), rate: scalar(grad), far: table(9, grad)",
            "relu(x + far[row % 9] - 0.01 * rate * abs(ts[row] - ts[col]))"),
      sites("slope: head(bf16, grad)", "relu(x + slope)"),
      sites("slope: head(grad), gain: scalar(grad)", "silu(x - 0.01 * slope * (row - col) + gain)")};
  return instances;
}

// Every score under two of the masks, in configs by turns: a kernel takes seconds to compile and run.
TEST(EmulatedFused, SiteWarps) {
  const Json masks[] = {{{"num_targets", true}, {"contextual_seq_len", 6}},
                        {{"max_attn_len", 20}, {"attn_scale", "rows"}},
                        {{"num_contexts", true}, {"attn_scale", "scalar"}, {"adds_gradients", true}}};
  for (size_t i = 0; i < 2 * instances_with_sites().size(); ++i) {
    const int64_t consumers = 1 + static_cast<int64_t>(i % 2);
    const bool tables = i / 2 + 2 < instances_with_sites().size();
    const int64_t warps = !tables ? 4 * consumers : i % 4 == 0 ? 1 : 2;  // consumer warps have the sums without tables
    KernelConfig config = i % 3 == 0 ? per_sequence(consumers, 2) : fused(consumers, 2);
    if (i + 1 == 2 * instances_with_sites().size()) config.attention().schedule = "semaphore";
    check(with(instances_with_sites()[i / 2], masks[(i + i / 2) % 3]), with_site_warps(config, warps));
  }
}

// Infinite at pairs that the mask leaves out, and where a tile goes past the end of its sequence.
TEST(EmulatedFused, ScoresThatAreInfiniteElsewhere) {
  const Json infinite = with(sites("gain: scalar(grad)", "silu(x + gain / (row - col + 60))"), {{"max_attn_len", 20}});
  check(infinite, with_site_warps(fused(2, 2), 8));
  check(infinite, hopper_tile("sm90_backward_twopass", 2, 64, 2));
  check(infinite, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedFused, SiteWarpsStayInBounds) {
  const Json changes = with(instances_with_sites()[0], {{"heads", 1}, {"contextual_seq_len", 0}, {"max_attn_len", 0}});
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, with_site_warps(fused(2, 2), 2), 1, changes);
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, with_site_warps(per_sequence(1, 2), 2), 1, changes);
  const Json slopes = with(instances_with_sites().back(), {{"heads", 1}});
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, with_site_warps(fused(2, 2), 8), 1, slopes);
}

TEST(EmulatedFused, SenselessIndicesStayInBounds) {
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(1, 2));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, fused(2, 2));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, semaphore(1, 2));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, per_sequence(1, 2));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, per_sequence(2, 2), 1, columns(128));
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, semaphore(1, 2), 1,
                                              {{"contextual_seq_len", 0}, {"max_attn_len", 0}});
}

TEST(EmulatedFused, ASequencesNumbersStayInIt) {
  check_that_numbers_stay_in_their_sequence(fused(2, 2));
  check_that_numbers_stay_in_their_sequence(semaphore(1, 2));
  check_that_numbers_stay_in_their_sequence(per_sequence(1, 2));
}

}  // namespace
}  // namespace hstujit
