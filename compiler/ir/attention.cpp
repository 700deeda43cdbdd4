// Attention operators -> hstu.attention. The mask is one formula over all flags; what an instance does not use folds
// away once the flags are bound.
#include "compiler/ir/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/hstu.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/scores.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using mlir::Value;

// docs/ops.md defines the mask by clipped ids. Here it is written in rows and columns, which gives the same answers for
// 0 <= t <= n and folds and inverts better. With h = n - t, c = contextual_seq_len, max_id as on that page:
//   id(column) < max_id  is  column < h and (c == 0 or c <= h): "history" below;
//   id(row) == id(column), row != column  happens among targets and among contextual rows only, and the contextual rows
//   that see each other do so by the contextual clause anyway.
class MaskBuilder {
 public:
  MaskBuilder(Ops& ops, mlir::Block& block)
      : ops_(ops),
        row_(block.getArgument(0)),
        column_(block.getArgument(1)),
        n_(block.getArgument(2)),
        t_(block.getArgument(3)) {
    causal_ = flag("causal");
    has_targets_ = flag("num_targets");
    context_ = number("contextual_seq_len");
    has_context_ = ops_.gt(context_, zero());
    // A sequence's targets count only where the instance takes num_targets.
    history_end_ = ops_.select(has_targets_, ops_.sub(n_, t_), n_);
    const Value context_fits = ops_.either(ops_.negate(has_context_), ops_.le(context_, history_end_));
    column_in_history_ = ops_.both(ops_.lt(column_, history_end_), context_fits);
    row_in_history_ = ops_.both(ops_.lt(row_, history_end_), context_fits);
  }

  Value build() {
    const Value semi_local_on = ops_.either(ops_.gt(number("sla_k1"), zero()), ops_.gt(number("sla_k2"), zero()));
    const Value masked =
        ops_.select(semi_local_on, semi_local(), ops_.either(ops_.both(ordered(), window()), contextual()));
    const Value visible = ops_.either(flag("full_mask"), masked);
    return ops_.both(visible, ops_.lt(column_, n_));
  }

 private:
  Value zero() { return ops_.integer(0); }
  Value flag(llvm::StringRef name) { return flag(name, ops_.builder().getI1Type()); }
  Value number(llvm::StringRef name) { return flag(name, ops_.builder().getIndexType()); }
  Value flag(llvm::StringRef name, mlir::Type type) {
    return hstu::FlagOp::create(ops_.builder(), ops_.location(), type, name);
  }

  // (row == column) or d > 0, and the rows of a target's own group up to itself.
  Value ordered() {
    const Value in_order = ops_.either(ops_.negate(causal_), ops_.le(column_, row_));
    const Value clips_ids = ops_.either(has_targets_, has_context_);
    const Value row_sees_all = ops_.both(ops_.negate(causal_), row_in_history_);
    const Value distinct = ops_.either(ops_.negate(clips_ids), ops_.either(column_in_history_, row_sees_all));
    return ops_.both(in_order, ops_.either(distinct, own_group()));
  }

  Value own_group() {
    const Value size = number("target_group_size");
    const Value grouped = ops_.both(has_targets_, ops_.gt(size, ops_.integer(1)));
    // First row of the target's group; a history row is alone.
    const Value position = ops_.max(ops_.sub(row_, history_end_), zero());
    const Value start = ops_.add(ops_.mul(ops_.div(position, size), size), history_end_);
    const Value group = ops_.both(ops_.ge(column_, ops_.min(start, row_)), ops_.le(column_, row_));
    return ops_.select(grouped, group, ops_.eq(row_, column_));
  }

  Value id(Value position, Value clip) {
    const Value from_context = ops_.max(ops_.add(ops_.sub(position, context_), ops_.integer(1)), zero());
    const Value unclipped = ops_.select(has_context_, from_context, position);
    return ops_.select(clip, ops_.min(unclipped, max_id()), unclipped);
  }

  Value max_id() {
    const Value behind_context = ops_.add(ops_.sub(history_end_, context_), ops_.integer(1));
    return ops_.select(has_context_, behind_context, history_end_);
  }

  Value window() {
    const Value length = number("max_attn_len");
    const Value row_id = id(row_, has_targets_);
    // A causal row that sees a column past the history shares its id, so the column's id need not be clipped.
    const Value column_id = id(column_, ops_.both(has_targets_, ops_.negate(causal_)));
    const Value difference = ops_.sub(row_id, column_id);
    const Value distance = ops_.select(causal_, difference, ops_.abs(difference));
    const Value full_tail = number("min_full_attn_seq_len");
    const Value in_tail = ops_.both(ops_.gt(full_tail, zero()), ops_.ge(row_id, ops_.sub(max_id(), full_tail)));
    return ops_.either(ops_.eq(length, zero()), ops_.either(ops_.le(distance, length), in_tail));
  }

  // id(row) == 0 and id(column) < max_id
  Value contextual() { return ops_.both(has_context_, ops_.both(ops_.lt(row_, context_), column_in_history_)); }

  // A history row sees the first k2 columns and the last k1 up to itself; a target row sees the history.
  Value semi_local() {
    const Value history_end = ops_.max(history_end_, zero());
    const Value leading = ops_.lt(column_, ops_.max(number("sla_k2"), context_));
    const Value local = ops_.gt(column_, ops_.sub(row_, number("sla_k1")));
    const Value history_row =
        ops_.both(ops_.lt(row_, history_end), ops_.both(ops_.le(column_, row_), ops_.either(leading, local)));
    const Value target_row = ops_.both(ops_.ge(row_, history_end), ops_.lt(column_, history_end));
    return ops_.either(history_row, target_row);
  }

  Ops& ops_;
  Value row_, column_, n_, t_;
  Value causal_, has_targets_, context_, has_context_, history_end_, column_in_history_, row_in_history_;
};

mlir::Attribute attribute(mlir::Builder& builder, int64_t value) { return builder.getI64IntegerAttr(value); }
mlir::Attribute attribute(mlir::Builder& builder, bool value) { return builder.getBoolAttr(value); }
mlir::Attribute attribute(mlir::Builder& builder, const std::string& value) { return builder.getStringAttr(value); }
template <typename Enumeration>
mlir::Attribute attribute(mlir::Builder& builder, Enumeration value) {
  return builder.getStringAttr(to_string(value));
}

void yield(Ops& ops, Value value) { hstu::YieldOp::create(ops.builder(), ops.location(), value); }

}  // namespace

Result<Module> build_attention(mlir::MLIRContext& context, const HstuAttentionParams& params) {
  mlir::OpBuilder builder(&context);
  const mlir::Location location = builder.getUnknownLoc();
  Module module(mlir::ModuleOp::create(location));
  builder.setInsertionPointToEnd(module->getBody());
  Ops ops(builder, location);

  mlir::SmallVector<mlir::NamedAttribute> attributes;
  for_each_field(params, [&](const auto& field, const auto& value) {
    attributes.push_back(builder.getNamedAttr(llvm::StringRef(field.name), attribute(builder, value)));
  });
  auto attention = hstu::AttentionOp::create(builder, location, mlir::TypeRange(), mlir::ValueRange(), attributes);

  const mlir::Type index = builder.getIndexType(), real = builder.getF32Type();
  mlir::Block* mask = builder.createBlock(&attention.getMaskRegion(), {}, {index, index, index, index},
                                          mlir::SmallVector<mlir::Location>(4, location));
  yield(ops, MaskBuilder(ops, *mask).build());
  mlir::Block* score = builder.createBlock(&attention.getScoreRegion(), {}, {real, real}, {location, location});
  const Value y = build_score(ops, params.score, score->getArgument(0), score->getArgument(1));
  if (!y) {
    return Status(Code::kUnsupported, fmt::format("score {} has no IR; allowed are {}", params.score,
                                                  fmt::join(split(kHstuScores, ' '), ", ")));
  }
  yield(ops, y);
  return module;
}

}  // namespace hstujit
