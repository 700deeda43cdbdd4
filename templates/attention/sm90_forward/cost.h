// Cost model of the sm90 skeleton: milliseconds of one forward launch.
#pragma once

#include <tuple>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90 {

// Factor of a config that packs sequences where no tile has several: no tuning run is to time what is then a worse
// list.
inline constexpr double kNothingToPack = 4;

// Work of one warpgroup in one KV tile, in cycles of a multiprocessor's units at their peak.
struct KvTileWork {
  double tensor = 0;      // both products
  double activation = 0;  // one transcendental an element
};
KvTileWork kv_tile_work(const HstuAttentionParams& params, int64_t block_n);

// Costs that make up the estimates, in units of one cycle in which a multiprocessor's tensor cores are at their peak;
// only their ratios count. They were searched at random over 1900 timings on an H200, 32 keys (docs/journal.md, entry
// 21), and fits to instances drawn at random made them no better (entries 61, 113); grids were made dearer, since lists
// lose less where sequences are not as long as assumed.
struct ForwardCosts {
  // A KV tile of one consumer warpgroup.
  double activation = 1.43;  // a multiprocessor's transcendentals and what goes with them, over their peak
  double chain = 1.7;        // a warpgroup's products and activation, one after the other, over both peaks
  double two_stages = 1.12;  // loads that are late for want of a third stage
  double kv_tile = 285;      // barriers and the loop
  // Ping-pong keeps products apart, and loses by warpgroups whose KV tiles take different times.
  double ping_pong = 0.92;
  // A row tile, during which its CTA works off no columns.
  double tile = 3900;
  double tile_rows = 3000;      // for 64 rows of q and 128 columns of output
  double tile_ping_pong = 800;  // the first step of ping-pong and the last
  double one_query = 4000;      // of a list: no second buffer takes the next tile's q early
  double in_group = 700;        // of a list whose entries are groups: which of its sequences (not timed)
  double grid_tile = 9000;      // of a grid: start, barriers and first loads, which a list hides
  double empty_cta = 1500;      // of a grid: past the end of its sequence
  // How tiles balance. A static list deals its work tiles out as if at random, and the slowest of some 100 CTAs is
  // about 3 standard deviations above the mean. A grid's CTAs start as others end: at its end half of the longest tile
  // is idle.
  double deviations = 3.25;
  double grid_tail = 0.5;
  // Tiles with rows of several sequences: their look-up, and the mask and the clean values that each of their KV tiles
  // takes. Counted in the machine code, not timed. Of long sequences few tiles have any.
  double packed_tile = 500;
  double packed_kv_tile = 150;
  double launch = 5000;

  // For bench/fit_costs.cpp.
  static constexpr auto fields() {
    return std::make_tuple(
        field("activation", &ForwardCosts::activation, ""), field("chain", &ForwardCosts::chain, ""),
        field("two_stages", &ForwardCosts::two_stages, ""), field("kv_tile", &ForwardCosts::kv_tile, ""),
        field("ping_pong", &ForwardCosts::ping_pong, ""), field("tile", &ForwardCosts::tile, ""),
        field("tile_rows", &ForwardCosts::tile_rows, ""), field("tile_ping_pong", &ForwardCosts::tile_ping_pong, ""),
        field("one_query", &ForwardCosts::one_query, ""), field("in_group", &ForwardCosts::in_group, ""),
        field("grid_tile", &ForwardCosts::grid_tile, ""), field("empty_cta", &ForwardCosts::empty_cta, ""),
        field("deviations", &ForwardCosts::deviations, ""), field("grid_tail", &ForwardCosts::grid_tail, ""),
        field("packed_tile", &ForwardCosts::packed_tile, ""),
        field("packed_kv_tile", &ForwardCosts::packed_kv_tile, ""), field("launch", &ForwardCosts::launch, ""));
  }
};

// `config` must be one that the skeleton does not reject for its tile.
double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const ForwardCosts& costs = {});

}  // namespace hstujit::sm90
