#include "templates/attention/host/mask_shape.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/visible_columns.h"

namespace hstujit {

namespace {

// As far as the numbers of a text reach, and not so far that counting takes long.
int64_t room_of_own(const HstuAttentionParams& params) {
  constexpr int64_t kLargest = 4096;
  const Expression mask = mask_of(params);
  int64_t room = 2;
  for (const Expression::Node& node : mask.nodes()) {
    if (node.op == Operator::kConstant && !node.boolean) room += std::min(std::abs(node.value), kLargest);
  }
  return std::min(room, kLargest);
}

// Rows that every part of the mask needs on each side.
int64_t room_of(const HstuAttentionParams& params) {
  if (params.has_own_mask() || params.has_intervals()) return room_of_own(params);
  return params.contextual_seq_len + params.max_attn_len + params.min_full_attn_seq_len + params.sla_k1 +
         params.sla_k2 + 2;
}

int64_t columns_between(VisibleColumns& visible, int64_t first, int64_t last) {
  int64_t columns = 0;
  for (const Span& span : visible.of(first, last)) columns += span.end - span.begin;
  return columns;
}

}  // namespace

// In the midst of a sequence each row sees one column more than the row before.
bool tiles_pair_up(const HstuAttentionParams& params) {
  const int64_t room = room_of(params);
  VisibleColumns visible(params, 4 * room, 0);
  return columns_between(visible, 2 * room, 2 * room) == columns_between(visible, 2 * room - 1, 2 * room - 1) + 1;
}

int64_t columns_of_rows(const HstuAttentionParams& params, int64_t rows) {
  const int64_t room = room_of(params);
  VisibleColumns visible(params, 4 * room + rows, 0);
  return columns_between(visible, 2 * room, 2 * room + rows - 1);
}

}  // namespace hstujit
