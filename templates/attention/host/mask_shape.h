// What a mask means for tiles, lists of tiles and registers, beside tile_counts.h, which counts. A wrong answer costs
// time or spills, never a result: results follow from the mask's region alone.
#pragma once

#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// The i-th tile of rows and the i-th from the end see as many columns together for every i; so it is with tiles of
// columns and rows. Contextual rows and targets are few, and left out of account.
bool tiles_pair_up(const HstuAttentionParams& params);

// Rows at the beginning of a sequence see all of its history, so that every tile of columns is seen by them.
inline bool first_rows_see_all(const HstuAttentionParams& params) { return params.has_contexts(); }

// Which tile of rows sees far more columns than the others of its sequence: contextual rows see everything where others
// have a window, targets see the history where others see parts of it.
enum class LongTile { kNone, kFirst, kLast };
inline LongTile long_tile(const HstuAttentionParams& params) {
  if (first_rows_see_all(params) && params.max_attn_len > 0) return LongTile::kFirst;
  return params.semi_local() && params.num_targets ? LongTile::kLast : LongTile::kNone;
}

// Columns that `rows` rows in the midst of a sequence see, where every part of the mask has room on both sides.
int64_t columns_of_rows(const HstuAttentionParams& params, int64_t rows);

// A producer that classifies tiles by it keeps more of what it derives.
inline bool is_long_mask(const HstuAttentionParams& params) {
  return params.has_contexts() || params.target_group_size > 1 || params.semi_local() || params.has_own_mask() ||
         params.has_intervals();
}

}  // namespace hstujit
