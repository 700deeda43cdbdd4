// KernelConfig: the choice. Everything a template lets the tuner vary, as one flat field list.
//
// Not every skeleton reads every field; a field that a skeleton does not read keeps its default, so that two
// configs are equal exactly when they give the same source.
//
// The bounds are those of every device there is, so that no template meets a size that it would divide by, or one whose
// products overflow; what a template needs beyond them is for its reject() to say.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compiler/spec/fields.h"
#include "compiler/support/status.h"

namespace hstujit {

struct KernelConfig {
  static constexpr int64_t kMostTile = 16384;   // rows or columns of a tile
  static constexpr int64_t kMostStages = 16;    // no shared memory holds more
  static constexpr int64_t kMostConsumers = 7;  // warpgroups of a block of 1024 threads beside the one that loads
  static constexpr int64_t kMostWarps = 32;     // of such a block
  static constexpr int64_t kMostBlocks = 32;    // resident on a multiprocessor

  std::string skeleton;   // name of the template folder's entry: "hstu_attention/sm90"
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
  bool lanes_arrive = false;  // sm90: every lane, not one per warp, arrives on barriers; for racecheck, never tuned
  std::string activation = "mufu";  // how the score's transcendental is computed: "mufu", "accurate"

  bool operator==(const KernelConfig&) const = default;

  static constexpr auto fields() {
    using C = KernelConfig;
    return std::make_tuple(field("skeleton", &C::skeleton, "template"),
                           field("block_m", &C::block_m, "rows of a tile", 0, kMostTile),
                           field("block_n", &C::block_n, "columns of a tile", 0, kMostTile),
                           field("stages", &C::stages, "pipeline depth", 1, kMostStages),
                           field("consumers", &C::consumers, "consumer warpgroups", 0, kMostConsumers),
                           field("warps", &C::warps, "warps of a block", 0, kMostWarps),
                           field("schedule", &C::schedule, "tile schedule").one_of("grid persistent ordered whole"),
                           field("blocks_per_sm", &C::blocks_per_sm, "resident blocks", 1, kMostBlocks),
                           field("ping_pong", &C::ping_pong, "products in turns"),
                           field("share_columns", &C::share_columns, "tiles are shared out over clusters of blocks"),
                           field("lanes_arrive", &C::lanes_arrive, "every lane arrives on barriers"),
                           field("activation", &C::activation, "score arithmetic").one_of("mufu accurate"));
  }
};

nlohmann::ordered_json to_json(const KernelConfig& config);
Result<KernelConfig> parse_kernel_config(const nlohmann::ordered_json& json);
// What cache keys and tuning records know a config by: JSON of the skeleton and of the fields that differ from their
// defaults. A field that is added later leaves the text of every older config as it was; for the same reason a default
// never changes.
std::string key_text(const KernelConfig& config);
// For tables: "sm90 128x128 stages=2 consumers=2 persistent". Fields with their default are left out, and two configs
// of one operator that differ read differently.
std::string describe(const KernelConfig& config);

}  // namespace hstujit
