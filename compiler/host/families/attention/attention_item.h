// What the item functions of attention are made of in both directions: the operator's regions over lanes, rows of this
// item's head, and which tiles may hold valid pairs.
#pragma once

#include <functional>
#include <limits>
#include <string_view>

#include "compiler/host/families/attention/gradient_parts.h"
#include "compiler/host/lift_lanes.h"
#include "compiler/host/operator.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// Coordinates of an item: a tile of rows of one sequence and head; kBegin and kEnd count from the sequence's first.
enum Coordinate : size_t {
  kSequenceStart,
  kSequenceRows,
  kTargets,
  kHead,
  kBegin,
  kEnd,
  kQueryStart,  // row of q, and of what has its rows, that would hold the sequence's row 0
  kSequence,    // number of the sequence in the batch
  kContexts,    // where each sequence has its own number of them
  kSide,        // backward: what the tile is of, an AttentionSide
  kFirstQuery,  // of columns in backward: the sequence's first row that q has
  kChain,       // of rows in backward: WorkItem::chain
};

// Backward computes dq of a tile of rows (of q and dout), dk and dv of a tile of columns (rows of k and v), and the
// gradient of the bias of a tile of rows and all columns that there can be; kHead is then a head of the bias. Of heads
// with softmax it first finds out what GradientParts::log_sum and mean are of.
// The same of the gradient of another operand of pairs, the i-th of them: kPairSide + i.
enum AttentionSide : int64_t { kRowSide, kColumnSide, kBiasSide, kSoftmaxSide, kPairSide };

// The operands of pairs that the score reads and that have gradients.
std::vector<const Operand*> pair_gradients(const AttentionSpec& spec);

class AttentionItem {
 public:
  // Fails where the module lacks a region function.
  static Result<AttentionItem> create(const AttentionSpec& spec, ItemFunction& function);

  using Value = mlir::Value;
  struct Visibility {
    Value full, visible;
  };

  const AttentionSpec& spec() const { return *spec_; }
  const HstuAttentionParams& params() const { return spec_->params(); }
  Emitter& emit() const { return function_->emit; }
  Value at(Coordinate coordinate) const { return function_->coordinates[coordinate]; }
  Value argument(std::string_view name) const { return function_->argument(name); }
  // The first failure of the functions below; what was built after it is thrown away.
  const Status& status() const { return status_; }

  // Places of a row of this item's sequence in q and in k.
  Value query_row(Value row) const { return emit().add(at(kQueryStart), row); }
  Value key_row(Value row) const { return emit().add(at(kSequenceStart), row); }
  // Rows of this item's head, or of another.
  TensorRows rows_of(std::string_view argument, int64_t width, Value first_row, Value head = {}) const;
  // The block of an operand of pairs, of its gradient or of what that is added to, which is `argument`, that begins at
  // these positions of this item's sequence.
  TensorBlock block_of(const Operand& operand, std::string_view argument, Value own_head, Value first_row,
                       Value first_column) const;
  // The head of the bias that a head of q has, and how many have the same.
  Value bias_head(Value head) const { return emit().div(head, emit().integer(heads_of_bias())); }
  int64_t heads_of_bias() const { return params().heads / params().bias_heads(); }
  Value round_up(Value value, int64_t multiple) const;

  // Calls of region functions. Rows and columns of visibility and of the spans are [begin, end).
  Visibility visibility(Value row, Value row_end, Value column, Value column_end);
  std::pair<Value, Value> columns_of_rows(Value row, Value row_end) { return span(mask_columns_, row, row_end); }
  std::pair<Value, Value> rows_of_columns(Value column, Value column_end) {
    return span(mask_rows_, column, column_end);
  }
  // `head` is that of q.
  Value valid(Value row, Value column, Value head);
  // Multiplies lanes of P, or of dP, of pairs by what dropout does: what is dropped is 0, whatever it is.
  Value dropped(Value lanes, Value row, Value column, Value head) const;
  // The score of a pair, x being its product.
  Value score(Value x, Value row, Value column, Value head);
  // The same, and its derivative with respect to x, which has the factor alpha.
  std::pair<Value, Value> score_and_slope(Value x, Value row, Value column, Value head);

  // The derivative of the score with respect to the operand's element of the row, or of the column.
  bool has_slope(const Operand& operand, bool of_column) const;
  Value slope_of(const Operand& operand, bool of_column, Value x, Value row, Value column, Value head);

  // The places where the score reads an operand whose gradient is a sum over all pairs: how many, the derivative with
  // respect to what one reads, the entry of a table that one reads.
  size_t count_sites(const Operand& operand) const;
  Value slope_at(const Operand& operand, size_t site, Value x, Value row, Value column, Value head);
  Value entry_at(const Operand& operand, size_t site, Value x, Value row, Value column, Value head);

  // Writes what is done of a head with softmax, or of another, where the instance has both.
  void by_kind(Value head, const std::function<void(bool softmax)>& body) const;
  // Finds the score that a head with softmax normalises, of lanes of pairs with the products x; and its derivative with
  // respect to x, which has the factor alpha.
  Value softmax_score(Value x, Value row, Value column, Value head);
  std::pair<Value, Value> softmax_score_and_slope(Value x, Value row, Value column, Value head);
  // Number below every S.
  Value lowest() const { return emit().broadcast(emit().real(std::numeric_limits<float>::lowest())); }

  // Whether every row of q has a factor of its own.
  bool scales_rows() const { return params().has_row_factors(); }
  // The factors of rows of q from `first` on, counted in the tensor, or one for all of them; 1 in heads with softmax.
  Emitter::RowFactor factors(Value first, Value head = {}) const;
  // Where all rows of q have the same: 1 / scaling_seqlen, 1 / max_seq_len where that is not positive, or the factor.
  Value factor() const;
  // Store and load what rows of a sequence, counted in k, add to gradients of operands in HostOperator::finish: each
  // row and head has parts.count() numbers.
  void store_part(Value slope, Value row, int64_t part, const GradientParts& parts);
  Value load_part(Value row, Value head, int64_t part, const GradientParts& parts) const;
  // Adds to what this item's chain leaves for one of GradientParts::sums_of_pairs.
  void add_to_chain(Value sum, Value element, const GradientParts& parts);

 private:
  AttentionItem(const AttentionSpec& spec, ItemFunction& function) : spec_(&spec), function_(&function) {}
  // valid() of an instance whose launches give the intervals.
  Value in_intervals(Value row, Value column, Value head);
  // Calls a function of the mask with `where`, then the counts of this item's sequence.
  Emitter::Values mask_region(mlir::func::FuncOp function, Emitter::Values where);
  Emitter::Values region(mlir::func::FuncOp function, const Emitter::Values& arguments);
  // The operand's elements at positions of this item's sequence; `pair`: arguments of a function of the score or of
  // the mask.
  Value read(hstu::ReadOp read, Value position, const Emitter::Values& pair) const;
  Emitter::Values score_arguments(Value x, Value row, Value column, Value head);
  Value inverse_scale() const;
  Value part_place(Value row, Value head, int64_t part, const GradientParts& parts) const;
  // Clipped to the sequence.
  std::pair<Value, Value> span(mlir::func::FuncOp function, Value begin, Value end);

  const AttentionSpec* spec_;
  ItemFunction* function_;
  mlir::func::FuncOp mask_valid_, mask_tile_, mask_columns_, mask_rows_, score_, score_grad_;
  Status status_;
};

// Write the body of the item function. `item_rows` is the most rows of an item.
Status emit_attention_forward(AttentionItem& item, int64_t item_rows);
Status emit_attention_backward(AttentionItem& item, int64_t item_rows);

}  // namespace hstujit
