// The cost model of the "per_sequence" schedule of the sm80 skeletons.
#pragma once

#include <tuple>

#include "compiler/plan/attention_config.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

// Costs that make up the estimates, in clocks: of a warp instruction's issue, or of a warp's wait. In proportion they
// are counts of machine code and clocks of a profile; their scale is that of the other models' estimates, as judged by
// bench/fit_costs.cpp with times on an H200 (docs/journal.md, entry 66).
struct PerSequenceCosts {
  double cta = 150;           // instructions of each warp: which sequence, addresses
  double tile = 80;           // of each warp for a tile, and
  double tile_column = 1.4;   // for each column of its sums
  double moving_tile = 50;    // of each warp for a moving tile
  double score = 0.3;         // for a score's activation and mask, and
  double product = 0.0011;    // for each column that it is multiplied with
  double waits = 1200;        // of a CTA: offsets, first loads, last stores
  double tile_waits = 500;    // of a tile
  double moving_waits = 300;  // of a moving tile
  double serial = 2;          // of a warp for each instruction of its own
  double tail = 1;            // longest CTAs, at whose end the others have ended

  // For bench/fit_costs.cpp.
  static constexpr auto fields() {
    using C = PerSequenceCosts;
    return std::make_tuple(
        field("cta", &C::cta, ""), field("tile", &C::tile, ""), field("tile_column", &C::tile_column, ""),
        field("moving_tile", &C::moving_tile, ""), field("score", &C::score, ""), field("product", &C::product, ""),
        field("waits", &C::waits, ""), field("tile_waits", &C::tile_waits, ""),
        field("moving_waits", &C::moving_waits, ""), field("serial", &C::serial, ""), field("tail", &C::tail, ""));
  }
};

// Work of a direction's kernel for one (sequence, head).
struct PerSequenceKernel {
  int64_t warp_rows = 0, chunk_columns = 0;
  int64_t resident = 1;        // CTAs on a multiprocessor
  int64_t roles = 1;           // CTAs, each of which computes the scores
  double product_columns = 0;  // that a score is multiplied with, by all roles
  double sum_columns = 0;      // of the results, of all roles
};

// CTAs that registers and shared memory have room for, which may be more than the config asks for.
int64_t resident_ctas(int64_t threads, int64_t registers, int64_t shared_bytes, const DeviceSpec& device);

// Estimated milliseconds of one launch.
double per_sequence_estimate_ms(const HstuAttentionParams& params, const AttentionConfig& config,
                                const DeviceSpec& device, const ProblemSize& size, const PerSequenceKernel& kernel,
                                const PerSequenceCosts& costs);

}  // namespace hstujit::sm80
