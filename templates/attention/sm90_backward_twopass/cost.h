// The cost model of the sm90_backward_twopass skeleton.
#pragma once

#include <tuple>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// Costs that make up the estimates, in units of one cycle in which a multiprocessor's tensor cores are at their peak;
// only their ratios count, and to the other template's estimates. Fitted by bench/fit_costs.cpp to 116 keys, the packed
// ones by hand (docs/journal.md, entry 66).
struct TwopassCosts {
  double activation = 2.75;    // a multiprocessor's transcendentals and what goes with them, over their peak
  double chain = 1.49;         // a warpgroup's products and activation, one after the other, over both peaks
  double overlapped = 0.93;    // of that, where the next products run during an activation
  double few_columns = 0.648;  // of the wait for operands that few columns at a time read from shared memory
  // Loads that are late: a stage is held from the first product with it to the last, so that few are free for them.
  // Beside more than four stages.
  double two_stages = 1.59;
  double three_stages = 1.09;
  double four_stages = 0.99;
  double moving_tile = 121;  // barriers and the loop
  double tile = 3340;        // of a list: what no load of the next tile hides
  double tile_rows = 1120;   // for 64 rows of 256 columns of stationary operands
  double target_mask = 204;  // of targets, looked at in each role, not once as where dS is computed once
  double one_tile = 3170;    // of a list whose tile has no second buffer
  double in_group = 1060;    // of a list whose entries are groups: which of its sequences
  double grid_tile = 4740;   // of a grid: start, barriers and first loads
  double empty_cta = 179;    // past the end of its sequence
  double list_tail = 2.29;   // longest tiles, at whose end others wait: the work tiles of a list do not balance
  double grid_tail = 0.36;
  // Cost of tiles with rows of several sequences, of both roles together.
  double packed_tile = 500;
  double packed_moving_tile = 500;  // for 128 columns of q and v
  double launch = 9200;

  // For bench/fit_costs.cpp.
  static constexpr auto fields() {
    return std::make_tuple(
        field("activation", &TwopassCosts::activation, ""), field("chain", &TwopassCosts::chain, ""),
        field("overlapped", &TwopassCosts::overlapped, ""), field("few_columns", &TwopassCosts::few_columns, ""),
        field("two_stages", &TwopassCosts::two_stages, ""), field("three_stages", &TwopassCosts::three_stages, ""),
        field("four_stages", &TwopassCosts::four_stages, ""), field("moving_tile", &TwopassCosts::moving_tile, ""),
        field("tile", &TwopassCosts::tile, ""), field("tile_rows", &TwopassCosts::tile_rows, ""),
        field("target_mask", &TwopassCosts::target_mask, ""), field("one_tile", &TwopassCosts::one_tile, ""),
        field("in_group", &TwopassCosts::in_group, ""), field("grid_tile", &TwopassCosts::grid_tile, ""),
        field("empty_cta", &TwopassCosts::empty_cta, ""), field("list_tail", &TwopassCosts::list_tail, ""),
        field("grid_tail", &TwopassCosts::grid_tail, ""), field("packed_tile", &TwopassCosts::packed_tile, ""),
        field("packed_moving_tile", &TwopassCosts::packed_moving_tile, ""), field("launch", &TwopassCosts::launch, ""));
  }
};

// Estimated milliseconds of one launch. `config` must be one that the skeleton does not reject for its tile.
double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const TwopassCosts& costs = {});

}  // namespace hstujit::sm90::backward
