// Kernels of instances whose sequences have each their own number of contexts, in emulation against the float64
// reference: none, one, as many as a tile has rows and one more or less, all rows, more than there are, and fewer than
// none.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

const std::vector<Json>& masks_of_contexts() {
  static const std::vector<Json> masks = {
      {{"num_contexts", true}},
      {{"num_contexts", true}, {"num_targets", true}, {"score", "relu"}},
      {{"num_contexts", true}, {"num_targets", true}, {"max_attn_len", 20}, {"min_full_attn_seq_len", 5}},
      {{"num_contexts", true}, {"num_targets", true}, {"max_attn_len", 9}, {"target_group_size", 3}},
      {{"num_contexts", true}, {"causal", false}, {"max_attn_len", 9}, {"offsets_dtype", "int32"}},
      {{"num_contexts", true}, {"sla_k1", 12}, {"sla_k2", 3}, {"num_targets", true}}};
  return masks;
}

// Sequences around the tiles of all templates, each with another number of contexts.
struct Batch {
  std::vector<int64_t> rows = {1, 65, 0, 200, 64, 127, 129, 70, 33, 130, 40, 66};
  std::vector<int64_t> targets = {1, 5, 0, 20, 64, 0, 70, 0, 3, 2, 7, 30};
  std::vector<int64_t> contexts = {0, 1, 7, 63, 64, 65, 129, 1000, -4, 6, 33, 50};
};

void check(const Json& changes, Direction direction, const KernelConfig& config, unsigned cluster = 1) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  const Batch batch;
  Lengths lengths{.rows = batch.rows, .num_targets = {}, .max_seq_len = 200};
  if (json.value("num_targets", false)) lengths.num_targets = batch.targets;
  if (json.value("op", "") == "delta_hstu_attention")
    lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 0, 140, 5, 33, 1, 2, 66};
  lengths.num_contexts = batch.contexts;
  Case(json, direction, config, lengths, cluster).check();
}

KernelConfig forward_tile(int64_t consumers, const char* schedule) {
  return hopper_tile("sm90_forward", consumers, 64, 2, schedule);
}

KernelConfig packed(KernelConfig config) {
  config.attention().pack_sequences = true;
  return config;
}

TEST(EmulatedContexts, Ampere) {
  for (const Json& mask : masks_of_contexts()) {
    check(mask, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(mask, Direction::kBackward, ampere_tile(32, 2, 16, 2));
    check(with(mask, {{"dtype", "fp16"}}), Direction::kForward, per_sequence(ampere_tile(32, 2, 32, 2)));
  }
}

TEST(EmulatedContexts, HopperForward) {
  for (const Json& mask : masks_of_contexts()) {
    check(with(mask, {{"heads", 1}}), Direction::kForward, forward_tile(1, "grid"));
    check(mask, Direction::kForward, forward_tile(2, "persistent"));
  }
}

TEST(EmulatedContexts, HopperForwardOfSplitColumns) {
  KernelConfig config = forward_tile(1, "grid");
  config.attention().split_kv = true;
  for (const Json& mask : masks_of_contexts()) check(with(mask, {{"heads", 1}}), Direction::kForward, config, 3);
}

TEST(EmulatedContexts, TheLastRows) {
  for (const Json& mask : masks_of_contexts()) {
    const Json delta = with(mask, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"heads", 1}});
    check(delta, Direction::kForward, forward_tile(1, "grid"));
    check(delta, Direction::kForward, ampere_tile(32, 2, 32, 2));
  }
}

// Each mask in one of the configs, in turn: a kernel takes seconds to compile and run.
TEST(EmulatedContexts, PackedForward) {
  size_t number = 0;
  for (const Json& mask : masks_of_contexts()) {
    const char* const schedule = number++ % 2 == 0 ? "grid" : "persistent";
    check(with(mask, {{"heads", 1}}), Direction::kForward, packed(hopper_tile("sm90_forward", 1, 64, 2, schedule, 2)));
  }
}

TEST(EmulatedContexts, TwoPassBackward) {
  const KernelConfig configs[] = {hopper_tile("sm90_backward_twopass", 1, 64, 2),
                                  packed(hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent")),
                                  hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent")};
  for (size_t i = 0; i < masks_of_contexts().size(); ++i) {
    check(with(masks_of_contexts()[i], {{"heads", 1}}), Direction::kBackward, configs[i % 3]);
    check(with(masks_of_contexts()[i], {{"heads", 1}}), Direction::kBackward, configs[(i + 1) % 2]);
  }
}

TEST(EmulatedContexts, FusedBackward) {
  const char* const schedules[] = {"persistent", "semaphore", "per_sequence"};
  for (size_t i = 0; i < masks_of_contexts().size(); ++i) {
    for (const size_t schedule : {i % 3, (i / 3 + i + 1) % 3}) {
      check(with(masks_of_contexts()[i], {{"heads", 1}}), Direction::kBackward,
            hopper_tile("sm90_backward_fused", 2, 64, 2, schedules[schedule]));
    }
  }
}

// More sequences than a list sorts: entries are groups of neighbours, of which lanes hand each other what they know.
TEST(EmulatedContexts, GroupsOfSequences) {
  Lengths lengths{.rows = {}, .num_targets = {}, .max_seq_len = 70};
  for (int64_t i = 0; i < 2100; ++i) {
    lengths.rows.push_back(i % 90 == 17 ? 70 : i % 45 == 3 ? 9 : 0);
    lengths.num_contexts.push_back(i % 4 == 1 ? 69 : i % 7);
    lengths.num_targets.push_back(i % 3);
  }
  const Json json = with(base(), {{"heads", 1}, {"num_contexts", true}, {"num_targets", true}, {"max_attn_len", 5}});
  Case(json, Direction::kForward, forward_tile(1, "persistent"), lengths).check();
  Case(json, Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent"), lengths).check();
}

// With a bias and operands of the score, whose gradients kernels of their own add up.
TEST(EmulatedContexts, GradientsOfOperands) {
  const Json bias = {{"num_contexts", true}, {"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}};
  const Json table = {{"num_contexts", true},
                      {"max_attn_len", 20},
                      {"operands", "w: row(grad), b: table(9, grad)"},
                      {"score", "silu(x * w[row] + b[clamp(row - col, 0, 8)])"}};
  for (const Json& changes : {bias, table}) {
    check(changes, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(changes, Direction::kBackward, ampere_tile(32, 2, 16, 2));
    check(with(changes, {{"heads", 1}}), Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  }
}

TEST(EmulatedContexts, SenselessNumbersStayInBounds) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const Json json = with(base(), {{"num_contexts", true}, {"num_targets", true}, {"max_attn_len", 9}});
  const std::pair<Direction, KernelConfig> kernels[] = {
      {Direction::kForward, ampere_tile(32, 2, 16, 2)},
      {Direction::kForward, forward_tile(1, "grid")},
      {Direction::kForward, packed(hopper_tile("sm90_forward", 1, 64, 2, "persistent", 2))},
      {Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2)},
      {Direction::kBackward, hopper_tile("sm90_backward_fused", 1, 64, 2, "persistent")}};
  for (const auto& [direction, config] : kernels) {
    const Case kernel(json, direction, config, {.rows = {20, 30, 40}, .num_targets = {}, .max_seq_len = 64});
    const Signature signature = kernel.spec()->signature(direction);
    for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 500, 20, 90}, {-7, tiny, huge, 3}}) {
      HostCall call = kernel.call();
      integers_of(call, signature, "seq_offsets") = offsets;
      integers_of(call, signature, "num_targets") = {huge, -3, tiny};
      integers_of(call, signature, "num_contexts") = {tiny, huge, -1};
      expect_within_bounds(call, tensor_names(signature), [&](HostCall& ready) { kernel.launch_packed(ready, 1); });
    }
  }
}

}  // namespace
}  // namespace hstujit
