// What the skeletons of the attention family let the tuner vary.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct AttentionConfig {
  static constexpr Family kFamily = Family::kAttention;
  static constexpr int64_t kMostTile = 16384;   // rows or columns of a tile
  static constexpr int64_t kMostStages = 16;    // no shared memory holds more
  static constexpr int64_t kMostConsumers = 7;  // warpgroups of a block of 1024 threads beside the one that loads
  static constexpr int64_t kMostWarps = 32;     // of such a block
  static constexpr int64_t kMostBlocks = 32;    // resident on a multiprocessor

  int64_t block_m = 0;    // rows of a tile
  int64_t block_n = 0;    // columns of a tile
  int64_t stages = 1;     // depth of the shared-memory pipeline
  int64_t consumers = 0;  // sm90: consumer warpgroups
  int64_t warps = 0;      // sm80: warps of a block
  // "grid": one block per tile; "persistent": resident blocks, each with its share of a list sorted by cost;
  // "ordered": resident blocks, each of which takes the list's next tile, sums that several tiles add to in that order;
  // "whole": resident blocks, each of which takes all tiles of the next sequence and head.
  std::string schedule = "grid";
  int64_t blocks_per_sm = 1;  // resident blocks the kernel is compiled for
  bool ping_pong = false;     // sm90: consumer warpgroups issue their products in turns
  // sm90: of a launch of few tiles, a cluster of blocks shares out the columns of each (see ClusterPlan).
  bool share_columns = false;
  std::string activation = "mufu";  // how the score's transcendental is computed: "mufu", "accurate"

  bool operator==(const AttentionConfig&) const = default;

  static constexpr auto fields() {
    using C = AttentionConfig;
    return std::make_tuple(field("block_m", &C::block_m, "rows of a tile", 0, kMostTile),
                           field("block_n", &C::block_n, "columns of a tile", 0, kMostTile),
                           field("stages", &C::stages, "pipeline depth", 1, kMostStages),
                           field("consumers", &C::consumers, "consumer warpgroups", 0, kMostConsumers),
                           field("warps", &C::warps, "warps of a block", 0, kMostWarps),
                           field("schedule", &C::schedule, "tile schedule").one_of("grid persistent ordered whole"),
                           field("blocks_per_sm", &C::blocks_per_sm, "resident blocks", 1, kMostBlocks),
                           field("ping_pong", &C::ping_pong, "products in turns"),
                           field("share_columns", &C::share_columns, "tiles are shared out over clusters of blocks"),
                           field("activation", &C::activation, "score arithmetic").one_of("mufu accurate"));
  }
};

}  // namespace hstujit
