// Attention backward on the host.
//
// An item is a tile of rows of one sequence and head, of one side. On the row side the tile is of q and dout, walks
// the columns that it may see, and sums dq; on the column side it is of k and v, walks the rows that may see it, and
// sums dk and dv. Both sides do the same with the roles exchanged: a is the item's q or k, b its dout or v, x and y
// are the other two of a tile, and for each register tile that mask_tile does not rule out
//
//   s = a * xT, dp = b * yT, ds = dp * score'(s), p = score(s) under the mask
//   da += ds * x, and on the column side db += p * y
//
// Each side computes s and dp anew, so that no two items write the same element and none waits for another. Everything
// stays in fp32, and the sums are rounded once. Rows that q does not have are passed over.
//
// A bias is added to s. Its gradient has items of its own, since several heads may share one: a tile of rows of a
// head of it walks all columns, sums ds over the heads, and writes 0 where there are no pairs, also in rows and columns
// behind the sequence. Rows of q leave sum(p * dp) of their head for the factors' gradient, and each
// side leaves the sums of slopes of operands that the score reads (GradientParts). Those of tables, of heads and of
// scalars are added up on the row side, for the item's pairs in scratch first.
//
// Items of heads with softmax come before the others: for each row of a tile they leave the logarithm of the sum of
// exp(s) and the sum of p * dp, with which p = exp(s - logarithm) and ds = p * (dp - sum).
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "compiler/host/families/attention/attention_item.h"
#include "compiler/host/families/attention/gradient_parts.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

using mlir::Value;

// Rows of one tile, at most.
constexpr int64_t kOtherTileRows = 128;

// The tensors of one side.
struct Side {
  AttentionSide which;
  const char *a, *b, *x, *y;
  const char *da, *db;               // what a side has not is null
  const Operand* operand = nullptr;  // whose gradient it sums, of pairs that the score reads

  bool rows() const { return which != kColumnSide; }  // whether the tile is of rows
  bool of_pairs() const { return which == kBiasSide || operand != nullptr; }
};

constexpr Side kSides[] = {{kRowSide, "q", "dout", "k", "v", "dq", nullptr},
                           {kColumnSide, "k", "v", "q", "dout", "dk", "dv"}};
constexpr Side kBias = {kBiasSide, "q", "dout", "k", "v", nullptr, nullptr};
constexpr Side kSoftmax = {kSoftmaxSide, "q", "dout", "k", "v", nullptr, nullptr};

class BackwardEmitter {
 public:
  BackwardEmitter(AttentionItem& item, int64_t item_rows)
      : params_(item.params()), item_(item), emit_(item.emit()), parts_(item.spec()) {
    const RegisterTile& tile = emit_.tile();
    wide_.attn = output_of(params_.attn_dim);
    wide_.hidden = output_of(params_.hidden_dim);
    a_ = emit_.allocate(item_rows, round_up(params_.attn_dim, tile.lanes));
    b_ = emit_.allocate(item_rows, round_up(params_.hidden_dim, tile.lanes));
    x_ = emit_.allocate(kOtherTileRows, wide_.attn.width);
    y_ = emit_.allocate(kOtherTileRows, wide_.hidden.width);
    x_transposed_ = emit_.allocate(a_.width, kOtherTileRows);
    y_transposed_ = emit_.allocate(b_.width, kOtherTileRows);
    s_ = emit_.allocate(tile.rows, tile.columns());
    dp_ = emit_.allocate(tile.rows, tile.columns());
    da_ = emit_.allocate(item_rows, wide_.attn.width);
    db_ = emit_.allocate(item_rows, wide_.hidden.width);
    const int64_t bias_rows = round_up(round_up(item_rows, tile.rows), tile.lanes);
    if (params_.has_bias()) {
      bias_ = emit_.allocate(bias_rows, kOtherTileRows);
      staged_bias_ = emit_.allocate(kOtherTileRows, bias_rows);
    }
    if (params_.returns_dbias() || !pair_gradients(item.spec()).empty()) {
      dpairs_ = emit_.allocate(item_rows, kOtherTileRows);
      if (params_.adds_gradients) before_ = emit_.allocate(item_rows, kOtherTileRows);
    }
    for (const GradientParts::Sum& sum : parts_.sums()) {
      if (is_summed(sum)) sums_.push_back({sum, emit_.allocate(item_rows, tile.lanes)});
    }
    if (item_.scales_rows()) factors_ = emit_.allocate(1, kOtherTileRows);
    if (params_.has_softmax()) {
      for (ScratchMatrix* const numbers : {&log_sums_, &means_})
        *numbers = emit_.allocate(1, std::max(item_rows, kOtherTileRows));
      for (ScratchMatrix* const lanes : {&largest_, &totals_, &products_})
        *lanes = emit_.allocate(item_rows, tile.lanes);
    }
    const OperandSums& of_pairs = parts_.sums_of_pairs();
    if (of_pairs.tables > 0) tables_ = emit_.allocate(1, round_up(of_pairs.tables, tile.lanes));
    if (of_pairs.others > 0) others_ = emit_.allocate(of_pairs.others, tile.lanes);
  }

  Status emit() {
    for (const Side& side : kSides) {
      emit_.when(emit_.eq(item_.at(kSide), emit_.integer(side.which)), [&] { emit_side(side); });
    }
    if (params_.returns_dbias())
      emit_.when(emit_.eq(item_.at(kSide), emit_.integer(kBiasSide)), [&] { emit_pair_side(kBias, bias()); });
    const std::vector<const Operand*> operands = pair_gradients(item_.spec());
    for (size_t i = 0; i < operands.size(); ++i) {
      Side side = kBias;
      side.which = static_cast<AttentionSide>(kPairSide + i);
      side.operand = operands[i];
      emit_.when(emit_.eq(item_.at(kSide), emit_.integer(side.which)), [&] { emit_pair_side(side, *operands[i]); });
    }
    if (params_.has_softmax())
      emit_.when(emit_.eq(item_.at(kSide), emit_.integer(kSoftmaxSide)), [&] { emit_softmax_side(); });
    return item_.status();
  }

 private:
  // How a row of sums is cut: into groups of so many vector registers, and padded to whole groups.
  struct Output {
    int64_t vectors = 0, width = 0;
  };

  // The part of an operand's gradient that a side sums: of each row of the item, lanes to be summed.
  struct PartSum {
    GradientParts::Sum part;
    ScratchMatrix lanes;
  };
  // Whether pairs add to it: the score may not read the operand there.
  bool is_summed(const GradientParts::Sum& sum) const {
    return !sum.operand->has_slopes() || item_.has_slope(*sum.operand, sum.of_columns);
  }
  // The sums of a side.
  std::vector<PartSum> sums_of(const Side& side) const {
    std::vector<PartSum> sums;
    for (const PartSum& sum : sums_) {
      if (side.which == (sum.part.of_columns ? kColumnSide : kRowSide)) sums.push_back(sum);
    }
    return sums;
  }

  Output output_of(int64_t width) const {
    const RegisterTile& tile = emit_.tile();
    const int64_t vectors = std::min(tile.vectors, ceil_div(width, tile.lanes));
    return {vectors, round_up(width, vectors * tile.lanes)};
  }

  void emit_softmax_side() {
    const Value begin = item_.at(kBegin), end = item_.at(kEnd), zero = emit_.integer(0);
    const Value rows = emit_.sub(end, begin);
    const Value padded_rows = item_.round_up(rows, emit_.tile().rows);
    const Value first = item_.query_row(begin);
    emit_.copy_rows(item_.rows_of("q", params_.attn_dim, first), rows, padded_rows, a_);
    emit_.copy_rows(item_.rows_of("dout", params_.hidden_dim, first), rows, padded_rows, b_);
    emit_.loop(zero, padded_rows, 1,
               [&](Value row) { emit_.store_lanes(item_.lowest(), emit_.address(largest_, row, zero)); });
    emit_.clear(totals_, padded_rows);
    emit_.clear(products_, padded_rows);
    walk(kSoftmax, begin, end, padded_rows);
    emit_.loop(zero, rows, 1, [&](Value row) {
      const Value largest_of_lanes = emit_.load_lanes(emit_.address(largest_, row, zero));
      const Value largest = emit_.max_of_lanes(largest_of_lanes);
      const Value kept = emit_.exp(emit_.subf(largest_of_lanes, emit_.broadcast(largest)));
      const auto sum_of = [&](ScratchMatrix lanes) {
        return emit_.sum_lanes(emit_.mulf(emit_.load_lanes(emit_.address(lanes, row, zero)), kept));
      };
      const Value total = sum_of(totals_), own = item_.key_row(emit_.add(begin, row));
      const Value none = emit_.compare(mlir::arith::CmpFPredicate::OEQ, total, emit_.real(0));
      // A row that sees nothing has no weights.
      const Value infinite = emit_.real(std::numeric_limits<float>::max());
      const Value log_sum = emit_.select(none, infinite, emit_.addf(largest, emit_.log(total)));
      const Value mean = emit_.select(none, emit_.real(0), emit_.divf(sum_of(products_), total));
      item_.store_part(log_sum, own, parts_.log_sum(), parts_);
      item_.store_part(mean, own, parts_.mean(), parts_);
    });
  }

  // Loads what those items left for the sequence's rows from `first` on.
  void stage_softmax(Value first, Value count, Value head) {
    if (!params_.has_softmax()) return;
    const Value zero = emit_.integer(0);
    emit_.loop(zero, count, 1, [&](Value row) {
      const Value own = item_.key_row(emit_.add(first, row));
      emit_.store_scalar(item_.load_part(own, head, parts_.log_sum(), parts_), emit_.address(log_sums_, zero, row));
      emit_.store_scalar(item_.load_part(own, head, parts_.mean(), parts_), emit_.address(means_, zero, row));
    });
  }

  // All tiles that the item's rows may see, or that may see its columns.
  void walk(const Side& side, Value begin, Value end, Value padded_rows) {
    auto [other, other_end] = side.rows() ? item_.columns_of_rows(begin, end) : item_.rows_of_columns(begin, end);
    if (!side.rows()) other = emit_.max(other, item_.at(kFirstQuery));
    emit_.loop(other, other_end, kOtherTileRows, [&, last = other_end](Value tile) {
      const Value tile_end = emit_.min(emit_.add(tile, emit_.integer(kOtherTileRows)), last);
      emit_.when(visibility(side, begin, end, tile, tile_end).visible,
                 [&] { emit_tile(side, tile, tile_end, padded_rows, item_.at(kHead)); });
    });
  }

  void emit_side(const Side& side) {
    const Value begin = item_.at(kBegin), end = item_.at(kEnd);
    const Value rows = emit_.sub(end, begin);
    const Value padded_rows = item_.round_up(rows, emit_.tile().rows);
    const Value first = side.rows() ? item_.query_row(begin) : item_.key_row(begin);
    emit_.copy_rows(item_.rows_of(side.a, params_.attn_dim, first), rows, padded_rows, a_);
    emit_.copy_rows(item_.rows_of(side.b, params_.hidden_dim, first), rows, padded_rows, b_);
    emit_.clear(da_, padded_rows);
    if (side.db != nullptr) emit_.clear(db_, padded_rows);
    for (const PartSum& sum : sums_of(side)) emit_.clear(sum.lanes, padded_rows);
    if (side.which == kRowSide) clear_sums_of_pairs();

    if (side.rows()) stage_softmax(begin, rows, item_.at(kHead));
    walk(side, begin, end, padded_rows);
    // The slope has the factor alpha. Factors of rows of q are in the weights already where those are not the item's.
    const bool done = !side.rows() && item_.scales_rows();
    const Emitter::RowFactor factor = done ? unchanged() : item_.factors(first);
    emit_.write_rows(da_, factor, item_.rows_of(side.da, params_.attn_dim, first), rows);
    if (side.db != nullptr) emit_.write_rows(db_, factor, item_.rows_of(side.db, params_.hidden_dim, first), rows);
    for (const PartSum& sum : sums_of(side)) {
      // P of the factors' gradient has no factor.
      const bool unscaled = done || !sum.part.operand->has_slopes();
      emit_.loop(emit_.integer(0), rows, 1, [&](Value row) {
        Value total = emit_.sum_lanes(emit_.load_lanes(emit_.address(sum.lanes, row, emit_.integer(0))));
        if (!unscaled) total = emit_.mulf(total, factor(row));
        item_.store_part(total, item_.key_row(emit_.add(begin, row)), sum.part.part, parts_);
      });
    }
    if (side.which == kRowSide) leave_sums_of_pairs();
  }

  void clear_sums_of_pairs() {
    const OperandSums& sums = parts_.sums_of_pairs();
    if (sums.tables > 0) emit_.clear(tables_, emit_.integer(1));
    if (sums.others > 0) emit_.clear(others_, emit_.integer(sums.others));
  }

  // Adds what valid pairs (row, column) of lanes add to tables, heads and scalars, dP being `passed_on`.
  void add_to_sums_of_pairs(Value product, Value passed_on, Value row, Value column, Value head, Value factor,
                            Value valid) {
    for (const OperandSums::Part& part : parts_.sums_of_pairs().parts) {
      const Operand& operand = *part.operand;
      const Value own_head = emit_.div(head, emit_.integer(params_.heads / part.heads));
      for (size_t site = 0; site < item_.count_sites(operand); ++site) {
        const Value slope = item_.slope_at(operand, site, product, row, column, head);
        Value term = emit_.mulf(emit_.mulf(passed_on, emit_.broadcast(slope)), emit_.broadcast(factor));
        term = emit_.select(valid, term, emit_.zero_lanes());
        const Value first = emit_.add(emit_.integer(part.first), emit_.mul(own_head, emit_.integer(part.entries)));
        if (operand.kind == &table_kind()) {
          emit_.scatter(term, emit_.address(tables_, emit_.integer(0), first),
                        item_.entry_at(operand, site, product, row, column, head));
        } else {
          const Value other = emit_.sub(first, emit_.integer(parts_.sums_of_pairs().tables));
          add_lanes(term, emit_.address(others_, other, emit_.integer(0)));
        }
      }
    }
  }

  void leave_sums_of_pairs() {
    const OperandSums& sums = parts_.sums_of_pairs();
    if (sums.count() == 0) return;
    const Value zero = emit_.integer(0), tables = emit_.integer(sums.tables);
    emit_.loop(zero, tables, 1, [&](Value element) {
      item_.add_to_chain(emit_.load_scalar(emit_.address(tables_, zero, element)), element, parts_);
    });
    emit_.loop(zero, emit_.integer(sums.others), 1, [&](Value other) {
      const Value sum = emit_.sum_lanes(emit_.load_lanes(emit_.address(others_, other, zero)));
      item_.add_to_chain(sum, emit_.add(tables, other), parts_);
    });
  }

  // A tile of rows of a head of the gradient of the bias, or of another operand of pairs, with all columns. Of rows
  // behind the sequence the item's sequence is empty.
  void emit_pair_side(const Side& side, const Operand& of) {
    const Value begin = item_.at(kBegin), end = item_.at(kEnd), n = item_.at(kSequenceRows), zero = emit_.integer(0);
    const Value rows = emit_.sub(end, begin);
    const Value padded_rows = item_.round_up(rows, emit_.tile().rows);
    const Value first = item_.query_row(begin);
    // Heads with softmax have no factors: those of the others are in what is added up.
    const Emitter::RowFactor factor = params_.has_softmax() ? unchanged() : item_.factors(first);
    const Value group = emit_.mul(item_.at(kHead), emit_.integer(params_.heads / of.heads));
    emit_.loop(zero, n, kOtherTileRows, [&](Value tile) {
      const Value tile_end = emit_.min(emit_.add(tile, emit_.integer(kOtherTileRows)), n);
      emit_.clear(dpairs_, padded_rows);
      emit_.when(item_.visibility(begin, end, tile, tile_end).visible, [&] {
        emit_.loop(zero, emit_.integer(params_.heads / of.heads), 1, [&](Value member) {
          const Value head = emit_.add(group, member);
          emit_.copy_rows(item_.rows_of("q", params_.attn_dim, first, head), rows, padded_rows, a_);
          emit_.copy_rows(item_.rows_of("dout", params_.hidden_dim, first, head), rows, padded_rows, b_);
          stage_softmax(begin, rows, head);
          emit_tile(side, tile, tile_end, padded_rows, head);
        });
      });
      const Value columns = emit_.sub(tile_end, tile);
      if (params_.adds_gradients) add_before(of, factor, begin, tile, rows, columns);
      emit_.write_block(dpairs_, params_.adds_gradients ? unchanged() : factor,
                        item_.block_of(of, of.gradient_name(), item_.at(kHead), begin, tile), rows, columns);
    });
    const Value end_of_columns = item_.argument("max_seq_len");
    if (!params_.adds_gradients) {
      emit_.clear_block(item_.block_of(of, of.gradient_name(), item_.at(kHead), begin, n), rows,
                        emit_.sub(end_of_columns, n));
      return;
    }
    emit_.loop(n, end_of_columns, kOtherTileRows, [&](Value tile) {
      const Value columns = emit_.min(emit_.sub(end_of_columns, tile), emit_.integer(kOtherTileRows));
      emit_.copy_block(item_.block_of(of, of.before_name(), item_.at(kHead), begin, tile), rows, columns, before_);
      emit_.write_block(before_, unchanged(), item_.block_of(of, of.gradient_name(), item_.at(kHead), begin, tile),
                        rows, columns);
    });
  }

  const Operand& bias() const { return *item_.spec().operand(OperandUse::kBias); }

  Emitter::RowFactor unchanged() {
    return [this](Value) { return emit_.real(1); };
  }

  // The block of dpairs_ becomes the rows' factors times what it is, and what is there before.
  void add_before(const Operand& of, const Emitter::RowFactor& factor, Value begin, Value tile, Value rows,
                  Value columns) {
    emit_.copy_block(item_.block_of(of, of.before_name(), item_.at(kHead), begin, tile), rows, columns, before_);
    emit_.loop(emit_.integer(0), rows, 1, [&](Value row) {
      const Value times = emit_.broadcast(factor(row));
      emit_.loop(emit_.integer(0), columns, emit_.tile().lanes, [&](Value column) {
        const Value at = emit_.address(dpairs_, row, column);
        const Value before = emit_.load_lanes(emit_.address(before_, row, column));
        emit_.store_lanes(emit_.addf(emit_.mulf(emit_.load_lanes(at), times), before), at);
      });
    });
  }

  AttentionItem::Visibility visibility(const Side& side, Value own, Value own_end, Value other, Value other_end) {
    return side.rows() ? item_.visibility(own, own_end, other, other_end)
                       : item_.visibility(other, other_end, own, own_end);
  }

  void emit_tile(const Side& side, Value other, Value other_end, Value padded_rows, Value head) {
    const RegisterTile& tile = emit_.tile();
    const Value zero = emit_.integer(0);
    const Value count = emit_.sub(other_end, other);
    const Value padded_count = item_.round_up(count, tile.columns());
    const Value first = side.rows() ? item_.key_row(other) : item_.query_row(other);
    emit_.copy_rows(item_.rows_of(side.x, params_.attn_dim, first, head), count, padded_count, x_);
    emit_.copy_rows(item_.rows_of(side.y, params_.hidden_dim, first, head), count, padded_count, y_);
    transpose(x_, padded_count, x_transposed_, a_.width);
    transpose(y_, padded_count, y_transposed_, b_.width);
    if (params_.has_bias()) stage_bias(side, other, count, padded_count, head);
    if (!side.rows()) stage_softmax(other, count, head);
    if (!side.rows() && item_.scales_rows()) {
      const Emitter::RowFactor factor = item_.factors(first);
      emit_.loop(zero, count, 1,
                 [&](Value row) { emit_.store_scalar(factor(row), emit_.address(factors_, zero, row)); });
    }

    emit_.loop(zero, padded_rows, tile.rows, [&](Value row) {
      const Value own = emit_.add(item_.at(kBegin), row);
      const Value own_end = emit_.min(emit_.add(own, emit_.integer(tile.rows)), item_.at(kEnd));
      emit_.loop(zero, padded_count, tile.columns(), [&](Value offset) {
        const Value begin = emit_.add(other, offset);
        const Value padded_end = emit_.add(begin, emit_.integer(tile.columns()));
        const auto pairs = visibility(side, own, own_end, begin, emit_.min(padded_end, other_end));
        emit_.when(pairs.visible, [&] {
          multiply_transposed(a_, row, x_transposed_, offset, params_.attn_dim, s_);
          multiply_transposed(b_, row, y_transposed_, offset, params_.hidden_dim, dp_);
          const Value full = emit_.both(pairs.full, emit_.le(padded_end, other_end));
          item_.by_kind(head, [&](bool softmax) {
            const auto emit = side.which == kSoftmaxSide ? &BackwardEmitter::emit_softmax_sums
                              : softmax                  ? &BackwardEmitter::emit_softmax_gradients
                                                         : &BackwardEmitter::emit_gradients;
            if (side.which == kSoftmaxSide && !softmax) return;
            emit_.when(
                full, [&] { (this->*emit)(side, row, offset, other, head, false); },
                [&] { (this->*emit)(side, row, offset, other, head, true); });
          });
          if (side.da != nullptr) accumulate(dp_, x_, offset, wide_.attn, da_, row);
          if (side.db != nullptr) accumulate(s_, y_, offset, wide_.hidden, db_, row);
        });
      });
    });
  }

  // bias_ becomes the bias of the item's rows, or columns, and of those of the tile.
  void stage_bias(const Side& side, Value other, Value count, Value padded_count, Value head) {
    const Value begin = item_.at(kBegin), rows = emit_.sub(item_.at(kEnd), begin), bias_head = item_.bias_head(head);
    if (side.rows()) {
      emit_.copy_block(item_.block_of(bias(), bias().name, bias_head, begin, other), rows, count, bias_);
      return;
    }
    emit_.copy_block(item_.block_of(bias(), bias().name, bias_head, other, begin), count, rows, staged_bias_);
    const int64_t lanes = emit_.tile().lanes;
    emit_.loop(emit_.integer(0), padded_count, lanes, [&](Value row) {
      emit_.loop(emit_.integer(0), rows, lanes, [&](Value column) {
        emit_.transpose_block(emit_.address(staged_bias_, row, column), staged_bias_.width,
                              emit_.address(bias_, column, row), bias_.width);
      });
    });
  }

  // Rows of x are a multiple of the lanes, and so is `width`.
  void transpose(ScratchMatrix x, Value rows, ScratchMatrix to, int64_t width) {
    const int64_t lanes = emit_.tile().lanes;
    emit_.loop(emit_.integer(0), rows, lanes, [&](Value row) {
      emit_.loop(emit_.integer(0), emit_.integer(width), lanes, [&](Value column) {
        emit_.transpose_block(emit_.address(x, row, column), x.width, emit_.address(to, column, row), to.width);
      });
    });
  }

  void multiply_transposed(ScratchMatrix a, Value row, ScratchMatrix x, Value offset, int64_t depth, ScratchMatrix to) {
    const Value zero = emit_.integer(0);
    emit_.multiply_tile(emit_.address(a, row, zero), a.width, emit_.address(x, zero, offset), x.width,
                        emit_.address(to, zero, zero), to.width, emit_.tile().vectors, depth, /*accumulate=*/false);
  }

  void accumulate(ScratchMatrix weights, ScratchMatrix x, Value offset, Output output, ScratchMatrix sums, Value row) {
    const RegisterTile& tile = emit_.tile();
    const Value zero = emit_.integer(0), weights_at = emit_.address(weights, zero, zero);
    emit_.loop(zero, emit_.integer(output.width), output.vectors * tile.lanes, [&](Value column) {
      emit_.multiply_tile(weights_at, weights.width, emit_.address(x, offset, column), x.width,
                          emit_.address(sums, row, column), sums.width, output.vectors, tile.columns(),
                          /*accumulate=*/true);
    });
  }

  // In place, one row at a time: products to weights in s, and gradients of weights to gradients of products in dp.
  // Where the mask or the end of the sequence says so, both are zero. The register tile is `item_row` behind the first
  // of the item and `offset` behind `first_other`, the first of the tile in memory.
  void emit_gradients(const Side& side, Value item_row, Value offset, Value first_other, Value head, bool masked) {
    const RegisterTile& tile = emit_.tile();
    const std::vector<PartSum> sums = sums_of(side);
    const Value own = emit_.add(item_.at(kBegin), item_row), other = emit_.add(first_other, offset);
    emit_.loop(emit_.integer(0), emit_.integer(tile.rows), 1, [&](Value row) {
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const Value step = emit_.integer(vector * tile.lanes);
        const Value s = emit_.address(s_, row, step), dp = emit_.address(dp_, row, step);
        const Value block_row = emit_.add(item_row, row), tile_column = emit_.add(offset, step);
        Value product = emit_.load_lanes(s);
        if (params_.has_bias())
          product = emit_.addf(product, emit_.load_lanes(emit_.address(bias_, block_row, tile_column)));
        const Value mine = emit_.add(own, row), others = emit_.count_from(emit_.add(other, step));
        const Value pair_row = side.rows() ? mine : others, pair_column = side.rows() ? others : mine;
        const auto [y, slope] = item_.score_and_slope(product, pair_row, pair_column, head);
        const Value passed_on = item_.dropped(emit_.load_lanes(dp), pair_row, pair_column, head);
        Value weight = emit_.broadcast(y);
        Value gradient = emit_.mulf(passed_on, emit_.broadcast(slope));
        if (!side.rows() && item_.scales_rows()) {
          const Value factors = emit_.load_lanes(emit_.address(factors_, emit_.integer(0), tile_column));
          weight = emit_.mulf(weight, factors);
          gradient = emit_.mulf(gradient, factors);
        }
        std::vector<Value> added;  // to each of the sums
        for (const PartSum& sum : sums) {
          const Operand& operand = *sum.part.operand;
          if (!operand.has_slopes()) {
            added.push_back(emit_.mulf(passed_on, weight));
            continue;
          }
          const Value own_slope = item_.slope_of(operand, sum.part.of_columns, product, pair_row, pair_column, head);
          added.push_back(emit_.mulf(passed_on, emit_.broadcast(own_slope)));
          if (!side.rows() && item_.scales_rows()) {
            const Value factors = emit_.load_lanes(emit_.address(factors_, emit_.integer(0), tile_column));
            added.back() = emit_.mulf(added.back(), factors);
          }
        }
        if (side.db != nullptr) weight = item_.dropped(weight, pair_row, pair_column, head);
        Value valid;
        if (masked) {
          valid = emit_.broadcast(valid_pairs(side, mine, others, head));
          weight = emit_.select(valid, weight, emit_.zero_lanes());
          gradient = emit_.select(valid, gradient, emit_.zero_lanes());
          for (Value& term : added) term = emit_.select(valid, term, emit_.zero_lanes());
        }
        if (side.db != nullptr) emit_.store_lanes(weight, s);
        if (side.which == kRowSide && parts_.sums_of_pairs().count() > 0) {
          // Rows behind the item's last one are padding.
          const Value first = item_.query_row(item_.at(kBegin));
          const Value last = emit_.sub(emit_.sub(item_.at(kEnd), item_.at(kBegin)), emit_.integer(1));
          const Value factor = item_.factors(first)(emit_.min(block_row, last));
          const Value counts = emit_.broadcast(emit_.le(block_row, last));
          add_to_sums_of_pairs(product, passed_on, pair_row, pair_column, head, factor,
                               valid ? emit_.both(valid, counts) : counts);
        }
        if (side.operand != nullptr) {
          const Value own_slope = item_.slope_of(*side.operand, false, product, pair_row, pair_column, head);
          gradient = emit_.mulf(passed_on, emit_.broadcast(own_slope));
          if (valid) gradient = emit_.select(valid, gradient, emit_.zero_lanes());
        }
        if (side.of_pairs() && params_.has_softmax()) {
          const Value first = item_.query_row(item_.at(kBegin));
          const Value last = emit_.sub(emit_.sub(item_.at(kEnd), item_.at(kBegin)), emit_.integer(1));
          gradient = emit_.mulf(gradient, emit_.broadcast(item_.factors(first, head)(emit_.min(block_row, last))));
        }
        if (side.of_pairs()) add_lanes(gradient, emit_.address(dpairs_, block_row, tile_column));
        if (side.da != nullptr) emit_.store_lanes(gradient, dp);
        for (size_t i = 0; i < sums.size(); ++i)
          add_lanes(added[i], emit_.address(sums[i].lanes, block_row, emit_.integer(0)));
      }
    });
  }

  // Some pairs of a register tile: lanes of columns of one row of the item, or of rows of one of its columns.
  struct Pairs {
    Value product, row, column;
    Value valid;                   // null where all are
    Value step;                    // where S and dP have them
    Value block_row, tile_column;  // row of the item, and where the tile in memory begins to have them
  };

  // Calls `what` for every register of a register tile.
  void for_pairs(const Side& side, Value item_row, Value offset, Value first_other, Value head, bool masked,
                 const std::function<void(const Pairs& pairs, Value row)>& what) {
    const RegisterTile& tile = emit_.tile();
    const Value own = emit_.add(item_.at(kBegin), item_row), other = emit_.add(first_other, offset);
    emit_.loop(emit_.integer(0), emit_.integer(tile.rows), 1, [&](Value row) {
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const Value step = emit_.integer(vector * tile.lanes);
        Value product = emit_.load_lanes(emit_.address(s_, row, step));
        if (params_.has_bias()) {
          const Value bias = emit_.address(bias_, emit_.add(item_row, row), emit_.add(offset, step));
          product = emit_.addf(product, emit_.load_lanes(bias));
        }
        const Value mine = emit_.add(own, row), others = emit_.count_from(emit_.add(other, step));
        const Value valid = masked ? emit_.broadcast(valid_pairs(side, mine, others, head)) : Value();
        what({product, side.rows() ? mine : others, side.rows() ? others : mine, valid, step, emit_.add(item_row, row),
              emit_.add(offset, step)},
             row);
      }
    });
  }

  // Adds to the sums of rows of a head with softmax, in each lane relative to its largest score.
  void emit_softmax_sums(const Side& side, Value item_row, Value offset, Value first_other, Value head, bool masked) {
    const Value zero = emit_.integer(0);
    for_pairs(side, item_row, offset, first_other, head, masked, [&](const Pairs& pairs, Value row) {
      const Value score = item_.softmax_score(pairs.product, pairs.row, pairs.column, head);
      const Value largest_at = emit_.address(largest_, pairs.block_row, zero), before = emit_.load_lanes(largest_at);
      const Value seen = masked ? emit_.select(pairs.valid, score, item_.lowest()) : score;
      const Value largest = emit_.maxf(before, seen), kept = emit_.exp(emit_.subf(before, largest));
      emit_.store_lanes(largest, largest_at);
      Value weight = emit_.exp(emit_.subf(seen, largest));
      const Value dp = emit_.load_lanes(emit_.address(dp_, row, pairs.step));
      Value product = emit_.mulf(weight, item_.dropped(dp, pairs.row, pairs.column, head));
      if (masked) {
        weight = emit_.select(pairs.valid, weight, emit_.zero_lanes());
        product = emit_.select(pairs.valid, product, emit_.zero_lanes());
      }
      for (const auto& [sums, term] : {std::pair{totals_, weight}, std::pair{products_, product}}) {
        const Value at = emit_.address(sums, pairs.block_row, zero);
        emit_.store_lanes(emit_.addf(emit_.mulf(emit_.load_lanes(at), kept), term), at);
      }
    });
  }

  // As emit_gradients, of a head with softmax.
  void emit_softmax_gradients(const Side& side, Value item_row, Value offset, Value first_other, Value head,
                              bool masked) {
    const Value zero = emit_.integer(0);
    for_pairs(side, item_row, offset, first_other, head, masked, [&](const Pairs& pairs, Value row) {
      const auto of_row = [&](ScratchMatrix numbers) {
        if (!side.rows()) return emit_.load_lanes(emit_.address(numbers, zero, pairs.tile_column));
        return emit_.broadcast(emit_.load_scalar(emit_.address(numbers, zero, pairs.block_row)));
      };
      const auto if_valid = [&](Value lanes) {
        return masked ? emit_.select(pairs.valid, lanes, emit_.zero_lanes()) : lanes;
      };
      const Value dp = emit_.address(dp_, row, pairs.step);
      const auto [score, slope] = item_.softmax_score_and_slope(pairs.product, pairs.row, pairs.column, head);
      Value weight = emit_.exp(emit_.subf(score, of_row(log_sums_)));
      const Value from_mean =
          emit_.subf(item_.dropped(emit_.load_lanes(dp), pairs.row, pairs.column, head), of_row(means_));
      if (params_.has_softmax_score()) add_to_operands(side, pairs, emit_.mulf(weight, from_mean), head);
      const Value gradient = if_valid(emit_.mulf(emit_.mulf(weight, slope), from_mean));
      if (side.db != nullptr) weight = item_.dropped(weight, pairs.row, pairs.column, head);
      if (side.db != nullptr) emit_.store_lanes(if_valid(weight), emit_.address(s_, row, pairs.step));
      if (side.which == kBiasSide) add_lanes(gradient, emit_.address(dpairs_, pairs.block_row, pairs.tile_column));
      if (side.da != nullptr) emit_.store_lanes(gradient, dp);
    });
  }

  // Adds to gradients of the operands that a head with softmax reads what its pairs pass on.
  void add_to_operands(const Side& side, const Pairs& pairs, Value passed_on, Value head) {
    const auto term_of = [&](const Operand& operand, bool of_column) {
      const Value slope = item_.slope_of(operand, of_column, pairs.product, pairs.row, pairs.column, head);
      const Value term = emit_.mulf(passed_on, emit_.broadcast(slope));
      return pairs.valid ? emit_.select(pairs.valid, term, emit_.zero_lanes()) : term;
    };
    for (const PartSum& sum : sums_of(side)) {
      if (!sum.part.operand->has_slopes()) continue;
      add_lanes(term_of(*sum.part.operand, sum.part.of_columns),
                emit_.address(sum.lanes, pairs.block_row, emit_.integer(0)));
    }
    if (side.operand != nullptr)
      add_lanes(term_of(*side.operand, false), emit_.address(dpairs_, pairs.block_row, pairs.tile_column));
    if (side.which != kRowSide || parts_.sums_of_pairs().count() == 0) return;
    // Rows behind the item's last one are padding.
    const Value counts = emit_.broadcast(emit_.lt(pairs.block_row, emit_.sub(item_.at(kEnd), item_.at(kBegin))));
    add_to_sums_of_pairs(pairs.product, passed_on, pairs.row, pairs.column, head, emit_.real(1),
                         pairs.valid ? emit_.both(pairs.valid, counts) : counts);
  }

  void add_lanes(Value lanes, Value address) {
    emit_.store_lanes(emit_.addf(emit_.load_lanes(address), lanes), address);
  }

  // The mask asks of columns alone that they lie in the sequence.
  Value valid_pairs(const Side& side, Value own, Value others, Value head) {
    if (side.rows()) return item_.valid(own, others, head);
    const Value inside = emit_.lt(others, emit_.broadcast(item_.at(kSequenceRows)));
    return emit_.both(inside, emit_.broadcast(item_.valid(others, own, head)));
  }

  const HstuAttentionParams& params_;
  AttentionItem& item_;
  Emitter& emit_;
  const GradientParts parts_;
  std::vector<PartSum> sums_;
  struct {
    Output attn, hidden;
  } wide_;
  ScratchMatrix a_, b_, x_, y_, x_transposed_, y_transposed_, s_, dp_, da_, db_;
  ScratchMatrix bias_, staged_bias_, dpairs_;
  ScratchMatrix before_;                       // of what the gradient of the bias is added to
  ScratchMatrix factors_;                      // of the rows of q of a tile
  ScratchMatrix log_sums_, means_;             // of the rows of q of a tile, or of the item, in a head with softmax
  ScratchMatrix largest_, totals_, products_;  // lanes that these follow from
  ScratchMatrix tables_;                       // what the item's pairs add to tables
  ScratchMatrix others_;                       // to elements of heads and to scalars, as lanes to be summed
};

}  // namespace

Status emit_attention_backward(AttentionItem& item, int64_t item_rows) {
  return BackwardEmitter(item, item_rows).emit();
}

}  // namespace hstujit
