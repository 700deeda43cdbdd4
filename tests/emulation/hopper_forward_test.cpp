// The forward kernels for Hopper in emulation, alone and in clusters that split the columns of a tile.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

KernelConfig forward_tile(int64_t consumers, int64_t block_n, int64_t stages, const char* schedule = "grid") {
  return hopper_tile("sm90_forward", consumers, block_n, stages, schedule);
}

KernelConfig shared_tile(int64_t block_n, int64_t stages) {
  KernelConfig config = forward_tile(1, block_n, stages);
  config.attention().split_kv = true;
  return config;
}

void check(const Json& changes, const KernelConfig& config, unsigned cluster = 1) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} in clusters of {}", json.dump(), describe(config), cluster));
  Case(json, Direction::kForward, config, hopper_lengths(json.value("num_targets", false)), cluster).check();
}

TEST(EmulatedHopper, ForwardOfEveryShape) {
  check({{"dtype", "bf16"}}, forward_tile(1, 64, 2));
  check({{"dtype", "fp16"}, {"attn_dim", 40}, {"hidden_dim", 128}}, forward_tile(2, 64, 3, "persistent"));
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 64}}, forward_tile(3, 80, 2, "persistent"));
}

// Clusters of as many CTAs as there are KV tiles, of more, and of numbers that do not divide them. Where the
// launch has room for no cluster, the kernel runs alone.
TEST(EmulatedHopper, ClustersShareTheColumnsOfATile) {
  for (const unsigned cluster : {1, 2, 3, 16}) {
    check({{"dtype", "bf16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, shared_tile(64, 2), cluster);
  }
  check({{"dtype", "fp16"}, {"attn_dim", 40}, {"hidden_dim", 128}}, shared_tile(64, 4), 5);
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 64}}, shared_tile(128, 3), 2);
}

// Some KV tiles of a window, or of a mask that leaves out columns between two ranges, have columns that no row sees.
TEST(EmulatedHopper, ClustersOfEveryMask) {
  for (const Json& mask : mask_changes()) check(with(mask, {{"heads", 1}}), shared_tile(64, 2), 3);
}

TEST(EmulatedHopper, SenselessIndicesStayInBoundsInClusters) {
  check_that_senseless_indices_stay_in_bounds(Direction::kForward, shared_tile(64, 2), 2);
}

// CTAs of a cluster, each with another head, share what all heads have in common.
TEST(EmulatedHopper, ClustersOfHeads) {
  const Json masks[] = {{{"num_targets", true}, {"contextual_seq_len", 6}},
                        {{"causal", false}, {"max_attn_len", 9}},
                        {{"sla_k1", 12}, {"sla_k2", 3}, {"attn_scale", "rows"}},
                        {{"num_contexts", true}}};
  const Json scores[] = {
      {{"operands", "ts: row(int64), pos: table(99), age: table(9)"},
       {"score", "silu(x + pos[col - row + 49] + age[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)])"}},
      {{"operands", "ts: row(int32), slope: head"},
       {"score", "silu(x - 0.01 * slope * (row - col)) + pow(1.0 + abs(ts[row] - ts[col]), -0.5)"}}};
  size_t number = 0;
  for (const Json& score : scores) {
    for (const Json& mask : masks) {
      KernelConfig config = forward_tile(2, number % 2 == 0 ? 64 : 96, 2);
      config.attention().head_cluster = number % 2 == 0 ? 2 : 4;
      config.attention().ping_pong = number % 3 == 0;
      check(with(with(score, mask), {{"heads", 4}, {"dtype", "bf16"}}), config);
      ++number;
    }
  }
}

TEST(EmulatedHopper, ClustersOfTheLastRows) {
  KernelConfig config = forward_tile(1, 64, 2);
  Lengths lengths = hopper_lengths(true);
  lengths.other_rows["Lq"] = {1, 20, 3, 70, 64, 0, 140};
  const Json json = with(base(), {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}});
  for (const unsigned cluster : {1, 3}) Case(json, Direction::kForward, config, lengths, cluster).check();
}

}  // namespace
}  // namespace hstujit
