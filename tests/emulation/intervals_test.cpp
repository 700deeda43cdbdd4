// Kernels of instances whose launches say which columns each row sees, in emulation against the float64 reference: one
// interval and several, the same ones for all heads and others for each, of every manner that inputs are drawn in.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

const std::vector<Json>& masks_of_intervals() {
  static const std::vector<Json> masks = {{{"attn_func", 1}},
                                          {{"attn_func", 3}, {"attn_func_heads", 2}, {"score", "relu"}},
                                          {{"attn_func", 9}, {"offsets_dtype", "int32"}}};
  return masks;
}

// Sequences around the tiles of all templates.
Lengths batch_of(const Json& json) {
  Lengths lengths{.rows = {1, 65, 0, 200, 64, 127, 129, 70, 330}, .num_targets = {}, .max_seq_len = 330};
  if (json.value("op", "") == "delta_hstu_attention") lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 0, 140, 5, 33};
  return lengths;
}

void check(const Json& changes, Direction direction, const KernelConfig& config, unsigned cluster = 1) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Case(json, direction, config, batch_of(json), cluster).check();
}

KernelConfig forward_tile(int64_t consumers, const char* schedule) {
  return hopper_tile("sm90_forward", consumers, 64, 2, schedule);
}

TEST(EmulatedIntervals, Ampere) {
  for (const Json& mask : masks_of_intervals()) {
    check(mask, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(mask, Direction::kBackward, ampere_tile(32, 2, 16, 2));
    check(with(mask, {{"dtype", "fp16"}}), Direction::kForward, per_sequence(ampere_tile(32, 2, 32, 2)));
  }
}

TEST(EmulatedIntervals, HopperForward) {
  for (const Json& mask : masks_of_intervals()) {
    check(mask, Direction::kForward, forward_tile(1, "grid"));
    check(mask, Direction::kForward, forward_tile(2, "persistent"));
  }
}

TEST(EmulatedIntervals, HopperForwardOfSplitColumns) {
  KernelConfig config = forward_tile(1, "grid");
  config.attention().split_kv = true;
  for (const Json& mask : masks_of_intervals()) check(mask, Direction::kForward, config, 3);
}

TEST(EmulatedIntervals, TheLastRows) {
  for (const Json& mask : masks_of_intervals()) {
    const Json delta = with(mask, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}});
    check(delta, Direction::kForward, forward_tile(1, "grid"));
    check(delta, Direction::kForward, ampere_tile(32, 2, 32, 2));
  }
}

TEST(EmulatedIntervals, TwoPassBackward) {
  for (const Json& mask : masks_of_intervals()) {
    check(mask, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
    check(mask, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, "persistent"));
  }
}

TEST(EmulatedIntervals, FusedBackward) {
  for (const Json& mask : masks_of_intervals()) {
    for (const char* schedule : {"persistent", "per_sequence", "semaphore"})
      check(mask, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, schedule));
  }
}

// With a bias and operands of the score, whose gradients kernels of their own add up.
TEST(EmulatedIntervals, GradientsOfOperands) {
  const Json bias = {{"attn_func", 3}, {"rab_heads", 1}, {"attn_scale", "rows"}};
  const Json table = {{"attn_func", 3},
                      {"operands", "w: row(grad), b: table(9, grad)"},
                      {"score", "silu(x * w[row] * w[col] + b[clamp(row - col, 0, 8)])"}};
  for (const Json& changes : {bias, table}) {
    check(changes, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(changes, Direction::kBackward, ampere_tile(32, 2, 16, 2));
    check(with(changes, {{"heads", 1}}), Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  }
}

// Nobody reads outside of attn_func, whatever it and the offsets hold.
TEST(EmulatedIntervals, SenselessNumbersStayInBounds) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const Json json = with(base(), {{"attn_func", 3}, {"attn_func_heads", 2}});
  const std::pair<Direction, KernelConfig> kernels[] = {
      {Direction::kForward, ampere_tile(32, 2, 16, 2)},
      {Direction::kForward, forward_tile(1, "persistent")},
      {Direction::kBackward, ampere_tile(32, 2, 16, 2)},
      {Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2)},
      {Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent")},
      {Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "semaphore")}};
  for (const auto& [direction, config] : kernels) {
    const Case kernel(json, direction, config, {.rows = {20, 30, 40}, .num_targets = {}, .max_seq_len = 64});
    const Signature signature = kernel.spec()->signature(direction);
    for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 500, 20, 90}, {-7, tiny, huge, 3}}) {
      HostCall call = kernel.call();
      integers_of(call, signature, "seq_offsets") = offsets;
      std::vector<int64_t>& ends = integers_of(call, signature, "attn_func");
      for (size_t i = 0; i < ends.size(); ++i)
        ends[i] = i % 5 == 0   ? std::numeric_limits<int32_t>::min()
                  : i % 5 == 1 ? std::numeric_limits<int32_t>::max()
                               : ends[i];
      expect_within_bounds(call, tensor_names(signature), [&](HostCall& ready) { kernel.launch_packed(ready, 1); });
    }
  }
}

}  // namespace
}  // namespace hstujit
