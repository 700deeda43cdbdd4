// How much of a mask a tiling works off, for cost models.
#pragma once

#include <cstdint>

#include "compiler/spec/hstu_attention/attention_spec.h"

namespace hstujit {

// Tiles that a tiling really works off in one sequence of `rows` rows without targets: what cost models share.
struct TileCounts {
  double row_tiles = 0;      // per (sequence, head)
  double column_blocks = 0;  // per (sequence, head), over all its row tiles
};
TileCounts count_tiles(const HstuAttentionParams& params, int64_t rows, int64_t block_m, int64_t block_n,
                       int64_t first_row = 0);

}  // namespace hstujit
