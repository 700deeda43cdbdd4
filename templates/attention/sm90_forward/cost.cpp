#include "templates/attention/sm90_forward/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/shared_value.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90/limits.h"
#include "templates/attention/sm90_forward/resources.h"

namespace hstujit::sm90 {

namespace {

// Clusters have nothing to split where tiles are many; no tuning run is to time what is then another grid.
constexpr double kNothingToSplit = 4;

constexpr double kLongestPacked = 1024;  // rows, on average

constexpr double kUnitsPerMs = 2.8e6;

// The time of a multiprocessor that the steps of a row tile take, shared with the other CTAs on it.
struct TileCost {
  double kv_tile = 0;  // a KV tile of all consumer warpgroups
  double tile = 0;     // what a tile takes once
  double rows = 0;     // what each 64 of its rows take once
};

// Work tiles of the persistent list: pairs of the first and the last row tile, the second and the last but one, or
// tiles.
std::vector<double> list_work_tiles(const std::vector<double>& tiles, bool in_pairs) {
  if (!in_pairs) return tiles;
  std::vector<double> work_tiles;
  for (size_t low = 0, high = tiles.size(); low < high; ++low) {
    --high;
    work_tiles.push_back(low == high ? tiles[low] : tiles[low] + tiles[high]);
  }
  return work_tiles;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

double squared_deviations(const std::vector<double>& values) {
  const double mean = sum(values) / static_cast<double>(values.size());
  double total = 0;
  for (const double value : values) total += (value - mean) * (value - mean);
  return total;
}

// Share of the score's instructions that a CTA of a cluster computes, where these have a value in common.
double share_of_own_work(const HstuAttentionParams& params, const AttentionConfig& config) {
  if (config.head_cluster == 1) return 1;
  const std::optional<SplitScore> split = split_score(params);
  if (!split) return 1;
  const double own = score_work(split->rest) + score_work(split->value) / static_cast<double>(config.head_cluster);
  return std::min(1.0, own / score_work(params));
}

// Time that a warpgroup waits for the bias of a KV tile: little where that is on its way while the product runs, else
// once for each 16 columns. Found by two keys alone (docs/journal.md, entry 86).
double bias_wait(const HstuAttentionParams& params, const Resources& resources, int64_t block_n) {
  constexpr double kAhead = 2000, kWait = 700;
  if (!params.has_bias()) return 0;
  return resources.bias_ahead ? kAhead : kWait * static_cast<double>(block_n) / 16;
}

// Transactions of its loads, which all warpgroups share.
double bias_loads(const HstuAttentionParams& params, int64_t block_n) {
  constexpr double kColumn = 8;
  return params.has_bias() ? kColumn * static_cast<double>(block_n) : 0;
}

TileCost tile_cost(const HstuAttentionParams& params, const AttentionConfig& config, const Resources& resources,
                   int64_t batch, const ForwardCosts& costs) {
  const auto consumers = static_cast<double>(config.consumers);
  const auto resident = timed_resident_ctas(config);
  const auto [tensor, all] = kv_tile_work(params, config.block_n);
  const double activation = all * share_of_own_work(params, config);
  const double chain = costs.chain * (tensor + activation) + bias_wait(params, resources, config.block_n);

  // The slowest of a warpgroup's own chain of steps, which others fill up, and of the units that all of them share.
  double kv_tile = std::max(
      {chain / (consumers * resident), tensor, costs.activation * activation, bias_loads(params, config.block_n)});
  if (config.stages == 2) kv_tile *= costs.two_stages;
  kv_tile += costs.kv_tile;
  double tile = costs.tile;
  if (config.schedule != "persistent") {
    tile += costs.grid_tile;
  } else {
    if (resources.query_stages == 1) tile += costs.one_query;
    if (!config.pack_sequences && batch > resources.schedule_sequences) tile += costs.in_group;
  }
  if (config.ping_pong) {
    kv_tile *= costs.ping_pong;
    tile += costs.tile_ping_pong;
  }
  if (config.pack_sequences) {
    kv_tile += costs.packed_kv_tile;
    tile += costs.packed_tile;
  }
  return {kv_tile * consumers, tile / resident,
          costs.tile_rows * static_cast<double>(params.hidden_dim) / 128 / resident};
}

}  // namespace

KvTileWork kv_tile_work(const HstuAttentionParams& params, int64_t block_n) {
  const double elements = 64.0 * static_cast<double>(block_n);
  const double width = static_cast<double>(round_up(params.attn_dim, int64_t{16}) + params.hidden_dim);
  return {elements * width / 2048, score_work(params) * elements / 16};
}

double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const ForwardCosts& costs) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const TileCost cost = tile_cost(params, config, resources, size.batch, costs);
  const bool persistent = config.schedule == "persistent";
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const auto resident = timed_resident_ctas(config);
  const auto all_tiles = std::ceil(max_rows / static_cast<double>(config.block_m));

  // Means over the assumed sequences.
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  auto lengths = static_cast<double>(sequences.size());
  double work = 0, deviations = 0, longest_tile = 0;
  // Row tiles, and the same in tiles of 64 rows: a warpgroup skips the KV tiles that none of its own 64 rows sees, and
  // leaves the units to the others.
  const auto add_tiles = [&](const std::vector<double>& tiles, const TileCounts& warpgroups) {
    const auto row_tiles = static_cast<double>(tiles.size());
    work += warpgroups.kv_tiles * cost.kv_tile / static_cast<double>(config.consumers) + row_tiles * cost.tile +
            warpgroups.row_tiles * cost.rows;
    if (persistent) {
      deviations += squared_deviations(list_work_tiles(tiles, resources.pair_tiles));
    } else {
      longest_tile = std::max(longest_tile, *std::max_element(tiles.begin(), tiles.end()));
    }
  };
  // By themselves, all KV tiles of a row tile one after the other.
  const auto times_of = [&](const std::vector<int64_t>& counts) {
    std::vector<double> tiles;
    for (const int64_t kv_tiles : counts) tiles.push_back(static_cast<double>(kv_tiles) * cost.kv_tile + cost.tile);
    return tiles;
  };
  const bool packed = config.pack_sequences && size.mean_fill * max_rows < kLongestPacked;
  if (packed) {
    const PackedTileCounts counts = count_packed_kv_tiles(params, sequences, config.block_m, config.block_n);
    lengths = static_cast<double>(counts.sequences);
    TileCounts all;
    for (const int64_t kv_tiles : counts.kv_tiles) {
      all.row_tiles += 1;
      all.kv_tiles += static_cast<double>(kv_tiles);
    }
    add_tiles(times_of(counts.kv_tiles), all);
  } else {
    for (const SequenceSize& sequence : sequences) {
      add_tiles(times_of(count_kv_tiles(params, sequence, config.block_m, config.block_n)),
                count_tiles(params, sequence, 64, config.block_n));
      const double tiles = std::ceil(static_cast<double>(sequence.rows) / static_cast<double>(config.block_m));
      if (!persistent) work += std::max(0.0, all_tiles - tiles) * costs.empty_cta / resident;
    }
  }

  const auto batch = static_cast<double>(size.batch);
  const double balanced = balanced_batch(size);
  const double heads = static_cast<double>(params.heads) * balanced / static_cast<double>(device.sm_count);
  double time = heads * work / lengths;
  if (persistent) {
    const double variance = heads * deviations / lengths / resident;  // of the sum of one CTA's work tiles
    time += costs.deviations * resident * std::sqrt(variance);
  } else {
    time += costs.grid_tail * resident * longest_tile;
  }
  const double in_vain = config.split_kv ? kNothingToSplit : config.pack_sequences && !packed ? kNothingToPack : 1;
  return (time * batch / balanced + costs.launch) / kUnitsPerMs * in_vain;
}

}  // namespace hstujit::sm90
