#include "compiler/spec/operators/hstu_attention/mask_expression.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "compiler/spec/operators/hstu_attention/own_mask.h"

namespace hstujit {

namespace {

// docs/ops-attention.md defines the mask by clipped ids. Here it is written in rows and columns, which gives the same
// answers for 0 <= t <= n and folds and inverts better. With h = n - t, c contextual rows, max_id as on that page:
//   id(column) < max_id  is  column < h and (c == 0 or c <= h): "history" below;
//   id(row) == id(column), row != column  happens among targets and among contextual rows only, and the contextual rows
//   that see each other do so by the contextual clause anyway.
class MaskBuilder {
 public:
  MaskBuilder() {
    row_ = number("row");
    column_ = number("column");
    n_ = number("n");
    t_ = number("t");
    causal_ = flag("causal");
    has_targets_ = flag("num_targets");
    // Ids of a sequence without contextual rows are all one too many where c is known at launch only: no difference of
    // two sees that.
    const Term number_of_all = number("contextual_seq_len"), of_each = flag("num_contexts");
    context_ = ops_.select(of_each, number("c"), number_of_all);
    has_context_ = ops_.either(of_each, ops_.gt(number_of_all, zero()));
    // A sequence's targets count only where the instance takes num_targets.
    history_end_ = ops_.select(has_targets_, ops_.sub(n_, t_), n_);
    const Term context_fits = ops_.either(ops_.negate(has_context_), ops_.le(context_, history_end_));
    column_in_history_ = ops_.both(ops_.lt(column_, history_end_), context_fits);
    row_in_history_ = ops_.both(ops_.lt(row_, history_end_), context_fits);
  }

  Expression build() && {
    const Term semi_local_on = ops_.either(ops_.gt(number("sla_k1"), zero()), ops_.gt(number("sla_k2"), zero()));
    const Term masked =
        ops_.select(semi_local_on, semi_local(), ops_.either(ops_.both(ordered(), window()), contextual()));
    const Term visible = ops_.either(flag("full_mask"), masked);
    const Term valid = ops_.both(visible, ops_.lt(column_, n_));
    return std::move(ops_).finish(valid);
  }

 private:
  Term zero() { return ops_.integer(0); }
  Term flag(std::string_view name) { return ops_.flag(name); }
  Term number(std::string_view name) { return ops_.number(name); }

  // (row == column) or d > 0, and the rows of a target's own group up to itself.
  Term ordered() {
    const Term in_order = ops_.either(ops_.negate(causal_), ops_.le(column_, row_));
    const Term clips_ids = ops_.either(has_targets_, has_context_);
    const Term row_sees_all = ops_.both(ops_.negate(causal_), row_in_history_);
    const Term distinct = ops_.either(ops_.negate(clips_ids), ops_.either(column_in_history_, row_sees_all));
    return ops_.both(in_order, ops_.either(distinct, own_group()));
  }

  Term own_group() {
    const Term size = number("target_group_size");
    const Term grouped = ops_.both(has_targets_, ops_.gt(size, ops_.integer(1)));
    // First row of the target's group; a history row is alone.
    const Term position = ops_.max(ops_.sub(row_, history_end_), zero());
    const Term start = ops_.add(ops_.mul(ops_.div(position, size), size), history_end_);
    const Term group = ops_.both(ops_.ge(column_, ops_.min(start, row_)), ops_.le(column_, row_));
    return ops_.select(grouped, group, ops_.eq(row_, column_));
  }

  Term id(Term position, Term clip) {
    const Term from_context = ops_.max(ops_.add(ops_.sub(position, context_), ops_.integer(1)), zero());
    const Term unclipped = ops_.select(has_context_, from_context, position);
    return ops_.select(clip, ops_.min(unclipped, max_id()), unclipped);
  }

  Term max_id() {
    const Term behind_context = ops_.add(ops_.sub(history_end_, context_), ops_.integer(1));
    return ops_.select(has_context_, behind_context, history_end_);
  }

  Term window() {
    const Term length = number("max_attn_len");
    const Term row_id = id(row_, has_targets_);
    // A causal row that sees a column past the history shares its id, so the column's id need not be clipped.
    const Term column_id = id(column_, ops_.both(has_targets_, ops_.negate(causal_)));
    const Term difference = ops_.sub(row_id, column_id);
    const Term distance = ops_.select(causal_, difference, ops_.abs(difference));
    const Term full_tail = number("min_full_attn_seq_len");
    const Term in_tail = ops_.both(ops_.gt(full_tail, zero()), ops_.ge(row_id, ops_.sub(max_id(), full_tail)));
    return ops_.either(ops_.eq(length, zero()), ops_.either(ops_.le(distance, length), in_tail));
  }

  // id(row) == 0 and id(column) < max_id
  Term contextual() { return ops_.both(has_context_, ops_.both(ops_.lt(row_, context_), column_in_history_)); }

  // A history row sees the first k2 columns and the last k1 up to itself; a target row sees the history.
  Term semi_local() {
    const Term history_end = ops_.max(history_end_, zero());
    const Term leading = ops_.lt(column_, ops_.max(number("sla_k2"), context_));
    const Term local = ops_.gt(column_, ops_.sub(row_, number("sla_k1")));
    const Term history_row =
        ops_.both(ops_.lt(row_, history_end), ops_.both(ops_.le(column_, row_), ops_.either(leading, local)));
    const Term target_row = ops_.both(ops_.ge(row_, history_end), ops_.lt(column_, history_end));
    return ops_.either(history_row, target_row);
  }

  ExpressionBuilder ops_;
  Term row_, column_, n_, t_;
  Term causal_, has_targets_, context_, has_context_, history_end_, column_in_history_, row_in_history_;
};

Expression within_columns(Expression own) {
  const Term root = {own.root()};
  ExpressionBuilder ops(std::move(own));
  const Term within = ops.lt(ops.number("column"), ops.number("n"));
  return std::move(ops).finish(ops.both(root, within));
}

std::string assumed_mask() {
  return fmt::format("col <= row and (col < {} or row - col < {})", AssumedIntervals::kFirst, AssumedIntervals::kLocal);
}

}  // namespace

const Expression& attention_mask() {
  static const auto& mask = *new Expression(MaskBuilder().build());
  return mask;
}

Expression mask_of(const HstuAttentionParams& params) {
  if (!params.has_own_mask() && !params.has_intervals()) return attention_mask();
  if (params.has_intervals()) return within_columns(parse_mask(assumed_mask()).value());
  Expression own = own_mask(params);
  return within_columns(reads_operands(own) ? without_reads(own, true) : std::move(own));
}

std::optional<ReadingMask> reading_mask_of(const HstuAttentionParams& params) {
  if (!params.has_own_mask() || params.operands.empty()) return std::nullopt;
  Expression own = own_mask(params);
  if (!reads_operands(own)) return std::nullopt;
  Expression least = without_reads(own, false);
  return ReadingMask{within_columns(std::move(least)), within_columns(std::move(own))};
}

}  // namespace hstujit
