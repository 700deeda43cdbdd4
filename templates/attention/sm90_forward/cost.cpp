#include "templates/attention/sm90_forward/cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90_forward/resources.h"

namespace hstujit::sm90 {

namespace {

// Times are in units of one cycle in which a multiprocessor's tensor cores are at their peak. The constants were
// searched at random over 1900 timings on an H200, 32 keys (docs/journal.md, entry 21): only their ratios count. Of the
// keys whose choice was timed, each choice is within 6 % of the best timed config.

// A KV tile of one consumer warpgroup.
constexpr double kActivation = 1.43;  // a multiprocessor's transcendentals and what goes with them, over their peak
constexpr double kChain = 1.7;        // a warpgroup's products and activation, one after the other, over both peaks
constexpr double kPieces = 210;       // in its chain: a mask that is looked at in pieces of 16 columns
constexpr double kTwoStages = 1.12;   // loads that are late for want of a third stage
constexpr double kKvTile = 285;       // barriers and the loop
// Ping-pong keeps products apart, and loses by warpgroups whose KV tiles take different times.
constexpr double kPingPong = 0.92;
constexpr double kPingPongInPieces = 1.11;

// A row tile, during which its CTA works off no columns.
constexpr double kTile = 3900;
constexpr double kTileRows = 3000;     // for 64 rows of q and 128 columns of output
constexpr double kTilePingPong = 800;  // the first step of ping-pong and the last
constexpr double kOneQuery = 4000;     // of a list: no second buffer takes the next tile's q early
constexpr double kInGroup = 700;       // of a list whose entries are groups: which of its sequences (not timed yet)
constexpr double kGridTile = 6900;     // of a grid: start, barriers and first loads, which a list hides
constexpr double kEmptyCta = 1500;     // of a grid: past the end of its sequence

// How tiles balance. A static list deals its work tiles out as if at random, and the slowest of some 100 CTAs is about
// 3 standard deviations above the mean. A grid's CTAs start as others end: at its end half of the longest tile is idle.
constexpr double kDeviations = 3.25;
constexpr double kGridTail = 0.5;

// Clusters have nothing to split where tiles are many; no tuning run is to time what is then another grid.
constexpr double kNothingToSplit = 4;

// Tiles with rows of several sequences: their look-up, and the mask and the clean values that each of their KV tiles
// takes. Counted in the machine code, not timed. Of long sequences few tiles have any.
constexpr double kPackedTile = 500;
constexpr double kPackedKvTile = 150;
constexpr double kLongestPacked = 1024;  // rows, on average

constexpr double kLaunch = 5000;
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

TileCost tile_cost(const HstuAttentionParams& params, const AttentionConfig& config, const Resources& resources,
                   int64_t batch) {
  const auto consumers = static_cast<double>(config.consumers);
  const auto resident = static_cast<double>(config.blocks_per_sm);
  const auto [tensor, activation] = kv_tile_work(params, config.block_n);
  const double chain = kChain * (tensor + activation) + (resources.mask_in_pieces ? kPieces : 0);

  // The slowest of a warpgroup's own chain of steps, which others fill up, and of the units that all of them share.
  double kv_tile = std::max({chain / (consumers * resident), tensor, kActivation * activation});
  if (config.stages == 2) kv_tile *= kTwoStages;
  kv_tile += kKvTile;
  double tile = kTile;
  if (config.schedule != "persistent") {
    tile += kGridTile;
  } else {
    if (resources.query_stages == 1) tile += kOneQuery;
    if (!config.pack_sequences && batch > resources.schedule_sequences) tile += kInGroup;
  }
  if (config.ping_pong) {
    kv_tile *= resources.mask_in_pieces ? kPingPongInPieces : kPingPong;
    tile += kTilePingPong;
  }
  if (config.pack_sequences) {
    kv_tile += kPackedKvTile;
    tile += kPackedTile;
  }
  return {kv_tile * consumers, tile / resident, kTileRows * static_cast<double>(params.hidden_dim) / 128 / resident};
}

}  // namespace

KvTileWork kv_tile_work(const HstuAttentionParams& params, int64_t block_n) {
  const double elements = 64.0 * static_cast<double>(block_n);
  const double width = static_cast<double>(round_up(params.attn_dim, int64_t{16}) + params.hidden_dim);
  return {elements * width / 2048, elements / 16};
}

double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const TileCost cost = tile_cost(params, config, resources, size.batch);
  const bool persistent = config.schedule == "persistent";
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const auto resident = static_cast<double>(config.blocks_per_sm);
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
      if (!persistent) work += std::max(0.0, all_tiles - tiles) * kEmptyCta / resident;
    }
  }

  const auto batch = static_cast<double>(size.batch);
  const double balanced = balanced_batch(size);
  const double heads = static_cast<double>(params.heads) * balanced / static_cast<double>(device.sm_count);
  double time = heads * work / lengths;
  if (persistent) {
    const double variance = heads * deviations / lengths / resident;  // of the sum of one CTA's work tiles
    time += kDeviations * resident * std::sqrt(variance);
  } else {
    time += kGridTail * resident * longest_tile;
  }
  const double in_vain = config.split_kv ? kNothingToSplit : config.pack_sequences && !packed ? kNothingToPack : 1;
  return (time * batch / balanced + kLaunch) / kUnitsPerMs * in_vain;
}

}  // namespace hstujit::sm90
