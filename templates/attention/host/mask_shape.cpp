#include "templates/attention/host/mask_shape.h"

#include "compiler/spec/operators/hstu_attention/visible_columns.h"

namespace hstujit {

namespace {

int64_t columns_of_row(VisibleColumns& visible, int64_t row) {
  int64_t columns = 0;
  for (const Span& span : visible.of(row, row)) columns += span.end - span.begin;
  return columns;
}

}  // namespace

// In the midst of a sequence, with room for every part of the mask on both sides, each row sees one column more than
// the row before.
bool tiles_pair_up(const HstuAttentionParams& params) {
  const int64_t room = params.contextual_seq_len + params.max_attn_len + params.min_full_attn_seq_len + params.sla_k1 +
                       params.sla_k2 + 2;
  VisibleColumns visible(params, 4 * room, 0);
  return columns_of_row(visible, 2 * room) == columns_of_row(visible, 2 * room - 1) + 1;
}

}  // namespace hstujit
