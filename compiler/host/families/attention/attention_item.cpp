#include "compiler/host/families/attention/attention_item.h"

#include <algorithm>

#include "compiler/host/philox.h"
#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/spec/operators/hstu_attention/dropout.h"

namespace hstujit {

using mlir::Value;

std::vector<const Operand*> pair_gradients(const AttentionSpec& spec) {
  std::vector<const Operand*> operands;
  for (const Operand& operand : spec.operands()) {
    if (operand.has_slopes() && operand.kind == &pair_kind()) operands.push_back(&operand);
  }
  return operands;
}

Result<AttentionItem> AttentionItem::create(const AttentionSpec& spec, ItemFunction& function) {
  AttentionItem item(spec, function);
  if (!spec.params().has_intervals()) {
    HSTUJIT_ASSIGN_OR_RETURN(item.mask_valid_, find_region_function(function.regions, kMaskValid));
    HSTUJIT_ASSIGN_OR_RETURN(item.mask_tile_, find_region_function(function.regions, kMaskTile));
    HSTUJIT_ASSIGN_OR_RETURN(item.mask_columns_, find_region_function(function.regions, kMaskColumns));
    HSTUJIT_ASSIGN_OR_RETURN(item.mask_rows_, find_region_function(function.regions, kMaskRows));
  }
  HSTUJIT_ASSIGN_OR_RETURN(item.score_, find_region_function(function.regions, kScore));
  HSTUJIT_ASSIGN_OR_RETURN(item.score_grad_, find_region_function(function.regions, kScoreGrad));
  return item;
}

TensorRows AttentionItem::rows_of(std::string_view name, int64_t width, Value first_row, Value head) const {
  return {argument(name), params().dtype, width, first_row, head ? head : at(kHead)};
}

TensorBlock AttentionItem::block_of(const Operand& operand, std::string_view name, Value own_head, Value first_row,
                                    Value first_column) const {
  return {argument(name), operand.dtype, {at(kSequence), own_head}, first_row, first_column};
}

Value AttentionItem::round_up(Value value, int64_t multiple) const {
  const Value whole = emit().integer(multiple);
  return emit().mul(emit().div(emit().add(value, emit().integer(multiple - 1)), whole), whole);
}

Emitter::Values AttentionItem::region(mlir::func::FuncOp function, const Emitter::Values& arguments) {
  auto results = emit_region(emit(), function, arguments,
                             [&](hstu::ReadOp read_op, Value position) { return read(read_op, position, arguments); });
  if (results.ok()) return std::move(results).value();
  if (status_.ok()) status_ = results.status();
  Emitter::Values zeros;
  for (mlir::Type type : function.getResultTypes()) {
    zeros.push_back(type.isIndex() ? emit().integer(0) : type.isInteger(1) ? emit().truth(false) : emit().zero_lanes());
  }
  return zeros;
}

Value AttentionItem::read(hstu::ReadOp read, Value position, const Emitter::Values& pair) const {
  constexpr size_t kRow = 1, kColumn = 2, kHeadArgument = 5;  // of functions of the score
  const llvm::StringRef name = read.getOperand();
  const auto operand =
      std::ranges::find_if(spec().operands(), [&](const Operand& other) { return other.name == name.str(); });
  const Value column = read.getByHead() ? emit().div(pair[kHeadArgument], emit().integer(read.getGroup())) : Value();
  if (read.is_of(row_kind().name)) {
    return emit().read_rows(argument(operand->name), operand->dtype, at(kSequenceStart), column, at(kSequenceRows),
                            position);
  }
  if (read.is_of(pair_kind().name)) {
    const Value own = column ? column : emit().integer(0);
    return emit().read_pairs(block_of(*operand, operand->name, own, {}, {}), pair[kRow], pair[kColumn],
                             at(kSequenceRows));
  }
  if (read.is_of(sequence_kind().name)) {
    return emit().read_entries(argument(operand->name), operand->dtype, {},
                               emit().add(at(kSequence), emit().integer(1)), at(kSequence));
  }
  const int64_t count = read.is_of(table_kind().name) ? operand->entries : std::max<int64_t>(operand->heads, 1);
  return emit().read_entries(argument(operand->name), operand->dtype, column, emit().integer(count), position);
}

Emitter::Values AttentionItem::mask_region(mlir::func::FuncOp function, Emitter::Values where) {
  where.push_back(at(kSequenceRows));
  where.push_back(at(kTargets));
  if (spec().takes_counts()) where.push_back(at(kContexts));
  return region(function, where);
}

AttentionItem::Visibility AttentionItem::visibility(Value row, Value row_end, Value column, Value column_end) {
  if (params().has_intervals()) return {emit().truth(false), emit().truth(true)};
  const Value one = emit().integer(1);
  const auto result = mask_region(mask_tile_, {row, emit().sub(row_end, one), column, emit().sub(column_end, one)});
  return {result[0], result[1]};
}

std::pair<Value, Value> AttentionItem::span(mlir::func::FuncOp function, Value begin, Value end) {
  if (params().has_intervals()) return {emit().integer(0), at(kSequenceRows)};
  const Value last = emit().sub(end, emit().integer(1));
  const auto ends = mask_region(function, {begin, last});
  return {emit().max(ends[0], emit().integer(0)), emit().min(ends[1], at(kSequenceRows))};
}

Value AttentionItem::valid(Value row, Value column, Value head) {
  return params().has_intervals() ? in_intervals(row, column, head) : mask_region(mask_valid_, {row, column})[0];
}

Value AttentionItem::dropped(Value lanes, Value row, Value column, Value head) const {
  if (!params().attn_dropout) return lanes;
  const Value zero = emit().integer(0);
  const Value seed = params().attn_seed_tensor ? emit().narrowed(emit().load_element(argument("seed_tensor"), zero))
                                               : argument("seed");
  const Value factor = emit_dropout_factor(emit(), {seed, argument("offset"), at(kSequenceStart), head},
                                           argument(kDropoutRatio), row, column);
  const Value none = emit().compare(mlir::arith::CmpFPredicate::OEQ, factor, emit().zero_lanes());
  return emit().select(none, emit().zero_lanes(), emit().mulf(lanes, factor));
}

Value AttentionItem::in_intervals(Value row, Value column, Value head) {
  const Operand& intervals = *spec().operand(OperandUse::kMask);
  const Value group = emit().div(head, emit().integer(params().heads / intervals.heads));
  const bool lanes = mlir::isa<mlir::VectorType>(row.getType()) || mlir::isa<mlir::VectorType>(column.getType());
  const auto in_lanes = [&](Value value) { return lanes ? emit().broadcast(value) : value; };
  const Value columns = in_lanes(column);
  const auto end = [&](int64_t number) {
    return in_lanes(
        emit().read_intervals(argument(intervals.name), group, number, at(kQueryStart), at(kSequenceRows), row));
  };
  Value valid = emit().lt(columns, end(0));
  for (int64_t number = 1; number < intervals.entries; number += 2) {
    const Value inside = emit().both(emit().le(end(number), columns), emit().lt(columns, end(number + 1)));
    valid = emit().either(valid, inside);
  }
  return emit().both(valid, emit().lt(columns, in_lanes(at(kSequenceRows))));
}

Emitter::Values AttentionItem::score_arguments(Value x, Value row, Value column, Value head) {
  Emitter::Values arguments = {x, row, column, at(kSequenceRows), at(kTargets), head};
  for (const mlir::BlockArgument scalar : llvm::make_filter_range(score_.getArguments(), is_launch_scalar))
    arguments.push_back(argument(argument_name(score_, scalar.getArgNumber())));
  return arguments;
}

Value AttentionItem::score(Value x, Value row, Value column, Value head) {
  return region(score_, score_arguments(x, row, column, head))[0];
}

std::pair<Value, Value> AttentionItem::score_and_slope(Value x, Value row, Value column, Value head) {
  const auto results = region(score_grad_, score_arguments(x, row, column, head));
  return {results[0], results[1]};
}

Value AttentionItem::softmax_score(Value x, Value row, Value column, Value head) {
  if (params().has_softmax_score()) return emit().broadcast(score(x, row, column, head));
  return emit().mulf(x, emit().broadcast(argument("alpha")));
}

std::pair<Value, Value> AttentionItem::softmax_score_and_slope(Value x, Value row, Value column, Value head) {
  if (!params().has_softmax_score()) return {softmax_score(x, row, column, head), emit().broadcast(argument("alpha"))};
  const auto [y, slope] = score_and_slope(x, row, column, head);
  return {emit().broadcast(y), emit().broadcast(slope)};
}

bool AttentionItem::has_slope(const Operand& operand, bool of_column) const {
  return function_->regions.lookupSymbol(score_slope(operand.name, of_column)) != nullptr;
}

Value AttentionItem::slope_of(const Operand& operand, bool of_column, Value x, Value row, Value column, Value head) {
  const auto function = function_->regions.lookupSymbol<mlir::func::FuncOp>(score_slope(operand.name, of_column));
  return region(function, score_arguments(x, row, column, head))[0];
}

size_t AttentionItem::count_sites(const Operand& operand) const {
  size_t count = 0;
  while (function_->regions.lookupSymbol(score_slope(operand.name, count)) != nullptr) ++count;
  return count;
}

Value AttentionItem::slope_at(const Operand& operand, size_t site, Value x, Value row, Value column, Value head) {
  const auto function = function_->regions.lookupSymbol<mlir::func::FuncOp>(score_slope(operand.name, site));
  return region(function, score_arguments(x, row, column, head))[0];
}

Value AttentionItem::entry_at(const Operand& operand, size_t site, Value x, Value row, Value column, Value head) {
  const auto function = function_->regions.lookupSymbol<mlir::func::FuncOp>(score_entry(operand.name, site));
  return region(function, score_arguments(x, row, column, head))[0];
}

Value AttentionItem::factor() const {
  const Operand* const factors = spec().operand(OperandUse::kFactor);
  return factors == nullptr ? inverse_scale() : emit().load_element(argument(factors->name), emit().integer(0));
}

Emitter::RowFactor AttentionItem::factors(Value first, Value head) const {
  const auto unless_softmax = [this, head](Value factor) {
    if (!params().has_softmax()) return factor;
    const Value softmax = emit().lt(head ? head : at(kHead), emit().integer(params().num_softmax_heads));
    return emit().select(softmax, emit().real(1), factor);
  };
  if (scales_rows()) {
    return [this, first, unless_softmax, all = argument(spec().operand(OperandUse::kFactor)->name)](Value row) {
      return unless_softmax(emit().load_element(all, emit().add(first, row)));
    };
  }
  return [all = unless_softmax(factor())](Value) { return all; };
}

void AttentionItem::by_kind(Value head, const std::function<void(bool softmax)>& body) const {
  if (!params().has_softmax()) return body(false);
  if (params().num_softmax_heads == params().heads) return body(true);
  emit().when(emit().lt(head, emit().integer(params().num_softmax_heads)), [&] { body(true); }, [&] { body(false); });
}

Value AttentionItem::part_place(Value row, Value head, int64_t part, const GradientParts& parts) const {
  const Value place = emit().add(emit().mul(row, emit().integer(params().heads)), head);
  return emit().add(emit().mul(place, emit().integer(parts.count())), emit().integer(parts.first() + part));
}

void AttentionItem::store_part(Value slope, Value row, int64_t part, const GradientParts& parts) {
  emit().store_element(slope, function_->parts, part_place(row, at(kHead), part, parts));
}

Value AttentionItem::load_part(Value row, Value head, int64_t part, const GradientParts& parts) const {
  return emit().load_element(function_->parts, part_place(row, head, part, parts));
}

void AttentionItem::add_to_chain(Value sum, Value element, const GradientParts& parts) {
  const Value place = emit().add(emit().mul(at(kChain), emit().integer(parts.sums_of_pairs().count())), element);
  emit().store_element(emit().addf(emit().load_element(function_->parts, place), sum), function_->parts, place);
}

Value AttentionItem::inverse_scale() const {
  Emitter& emit = this->emit();
  const Value given = argument("scaling_seqlen");
  const Value scale = emit.select(emit.gt(given, emit.integer(0)), given, argument("max_seq_len"));
  const Value integer =
      mlir::arith::IndexCastOp::create(emit.builder(), emit.location(), emit.builder().getI64Type(), scale);
  const Value real =
      mlir::arith::SIToFPOp::create(emit.builder(), emit.location(), emit.builder().getF32Type(), integer);
  return emit.divf(emit.real(1), real);
}

}  // namespace hstujit
