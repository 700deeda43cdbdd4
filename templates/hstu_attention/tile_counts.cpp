#include "templates/hstu_attention/tile_counts.h"

#include <algorithm>

#include "compiler/support/integers.h"

namespace hstujit {

TileCounts count_tiles(const HstuAttentionParams& params, int64_t rows, int64_t block_m, int64_t block_n,
                       int64_t first_row) {
  const bool windowed = params.max_attn_len > 0;
  TileCounts counts;
  for (int64_t row = first_row; row < rows; row += block_m) {
    const int64_t last = std::min(row + block_m, rows) - 1;
    int64_t begin = 0;
    int64_t end = params.causal ? last + 1 : rows;
    int64_t extra = 0;
    if (windowed && !params.causal) end = std::min(rows, last + params.max_attn_len + 1);
    if (windowed) begin = std::max<int64_t>(0, row - params.max_attn_len);
    if (params.semi_local()) {
      begin = std::max<int64_t>(0, row - params.sla_k1);
      extra = std::min(begin, params.sla_k2);
    }
    counts.row_tiles += 1;
    counts.column_blocks += static_cast<double>(ceil_div(end - begin, block_n) + ceil_div(extra, block_n));
  }
  return counts;
}

}  // namespace hstujit
