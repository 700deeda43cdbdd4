// Attention forward on the host.
//
// An item is a tile of rows of one sequence and head. It walks the columns that those may see in tiles: a tile of
// k (transposed) and v goes to scratch as fp32, then, for each register tile of rows and columns that mask_tile does
// not rule out, scores = q * kT, weights = score(scores) under the mask, sums += weights * v. Everything stays in fp32,
// the weights too, and the sums are rounded once: closer to the reference than a tensor core, which rounds the weights
// to 16 bits. Weights of heads with softmax are relative to the largest S so far; where a register tile has a larger
// one, the sums become relative to that.
#include <algorithm>
#include <limits>
#include <vector>

#include "compiler/host/families/attention/attention_item.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

using mlir::Value;

// Columns of one tile, at most.
constexpr int64_t kTileColumns = 256;

// Writes the body of the item function.
class ForwardEmitter {
 public:
  ForwardEmitter(AttentionItem& item, int64_t item_rows) : params_(item.params()), item_(item), emit_(item.emit()) {
    const RegisterTile& tile = emit_.tile();
    output_vectors_ = std::min(tile.vectors, ceil_div(params_.hidden_dim, tile.lanes));
    const int64_t depth = round_up(params_.attn_dim, tile.lanes);
    const int64_t output = round_up(params_.hidden_dim, output_vectors_ * tile.lanes);
    queries_ = emit_.allocate(item_rows, depth);
    staged_keys_ = emit_.allocate(tile.lanes, depth);
    keys_ = emit_.allocate(depth, kTileColumns);
    values_ = emit_.allocate(kTileColumns, output);
    weights_ = emit_.allocate(tile.rows, tile.columns());
    sums_ = emit_.allocate(item_rows, output);
    if (params_.has_bias()) bias_ = emit_.allocate(round_up(item_rows, tile.rows), kTileColumns);
    if (params_.has_softmax()) {
      largest_ = emit_.allocate(1, item_rows);
      totals_ = emit_.allocate(item_rows, tile.lanes);
    }
  }

  Status emit() {
    const Value begin = item_.at(kBegin), end = item_.at(kEnd);
    const Value rows = emit_.sub(end, begin);
    const Value padded_rows = item_.round_up(rows, emit_.tile().rows);
    const Value first_query = item_.query_row(begin);
    emit_.copy_rows(item_.rows_of("q", params_.attn_dim, first_query), rows, padded_rows, queries_);
    emit_.clear(sums_, padded_rows);
    if (params_.has_softmax()) {
      emit_.clear(totals_, padded_rows);
      const Value lowest = emit_.real(std::numeric_limits<float>::lowest()), zero = emit_.integer(0);
      emit_.loop(zero, padded_rows, 1,
                 [&](Value row) { emit_.store_scalar(lowest, emit_.address(largest_, zero, row)); });
    }

    const auto [first_column, column_end] = item_.columns_of_rows(begin, end);
    emit_.loop(first_column, column_end, kTileColumns, [&, column_end = column_end](Value column) {
      const Value tile_end = emit_.min(emit_.add(column, emit_.integer(kTileColumns)), column_end);
      emit_.when(item_.visibility(begin, end, column, tile_end).visible,
                 [&] { emit_tile(column, tile_end, padded_rows); });
    });
    emit_.write_rows(sums_, factors(first_query), item_.rows_of("out", params_.hidden_dim, first_query), rows);
    return item_.status();
  }

 private:
  // Factors of rows; with softmax they are 1 over the sum of the row's weights, and 0 where there are none.
  Emitter::RowFactor factors(Value first_query) {
    const Emitter::RowFactor given = item_.factors(first_query);
    if (!params_.has_softmax()) return given;
    return [this, given](Value row) {
      const Value total = emit_.sum_lanes(emit_.load_lanes(emit_.address(totals_, row, emit_.integer(0))));
      const Value none = emit_.compare(mlir::arith::CmpFPredicate::OEQ, total, emit_.real(0));
      const Value inverse = emit_.select(none, emit_.real(0), emit_.divf(emit_.real(1), total));
      const Value softmax = emit_.lt(item_.at(kHead), emit_.integer(params_.num_softmax_heads));
      return emit_.select(softmax, inverse, given(row));
    };
  }

  void emit_tile(Value column, Value column_end, Value padded_rows) {
    const RegisterTile& tile = emit_.tile();
    const Value count = emit_.sub(column_end, column);
    const Value padded_count = item_.round_up(count, tile.columns());
    const Value first = item_.key_row(column);
    pack_keys(first, count, padded_count);
    emit_.copy_rows(item_.rows_of("v", params_.hidden_dim, first), count, padded_count, values_);

    const Value end = item_.at(kEnd);
    if (params_.has_bias()) {
      const Operand* const bias = item_.spec().operand(OperandUse::kBias);
      emit_.copy_block(item_.block_of(*bias, bias->name, item_.bias_head(item_.at(kHead)), item_.at(kBegin), column),
                       emit_.sub(end, item_.at(kBegin)), count, bias_);
    }
    emit_.loop(emit_.integer(0), padded_rows, tile.rows, [&](Value row) {
      const Value first_row = emit_.add(item_.at(kBegin), row);
      const Value row_end = emit_.min(emit_.add(first_row, emit_.integer(tile.rows)), end);
      emit_.loop(emit_.integer(0), padded_count, tile.columns(), [&](Value offset) {
        const Value begin = emit_.add(column, offset);
        const Value padded_end = emit_.add(begin, emit_.integer(tile.columns()));
        const auto pairs = item_.visibility(first_row, row_end, begin, emit_.min(padded_end, column_end));
        emit_.when(pairs.visible, [&] {
          const Value depth_zero = emit_.integer(0);
          emit_.multiply_tile(emit_.address(queries_, row, depth_zero), queries_.width,
                              emit_.address(keys_, depth_zero, offset), keys_.width, weights_at(depth_zero),
                              weights_.width, tile.vectors, params_.attn_dim,
                              /*accumulate=*/false);
          // Padding must have weight zero, which only the mask gives it whatever the score is.
          const Value full = emit_.both(pairs.full, emit_.le(padded_end, column_end));
          item_.by_kind(item_.at(kHead), [&](bool softmax) {
            const auto weigh = softmax ? &ForwardEmitter::emit_softmax : &ForwardEmitter::emit_weights;
            emit_.when(
                full, [&] { (this->*weigh)(row, offset, column, false); },
                [&] { (this->*weigh)(row, offset, column, true); });
          });
          const int64_t step = output_vectors_ * tile.lanes;
          emit_.loop(depth_zero, emit_.integer(values_.width), step, [&](Value output) {
            emit_.multiply_tile(weights_at(depth_zero), weights_.width, emit_.address(values_, offset, output),
                                values_.width, emit_.address(sums_, row, output), sums_.width, output_vectors_,
                                tile.columns(),
                                /*accumulate=*/true);
          });
        });
      });
    });
  }

  Value weights_at(Value row) { return emit_.address(weights_, row, emit_.integer(0)); }

  void pack_keys(Value first, Value count, Value padded_count) {
    const int64_t lanes = emit_.tile().lanes;
    const Value whole = emit_.integer(lanes), zero = emit_.integer(0);
    emit_.loop(zero, padded_count, lanes, [&](Value column) {
      const Value present = emit_.min(emit_.max(emit_.sub(count, column), zero), whole);
      emit_.copy_rows(item_.rows_of("k", params_.attn_dim, emit_.add(first, column)), present, whole, staged_keys_);
      emit_.loop(zero, emit_.integer(staged_keys_.width), lanes, [&](Value depth) {
        emit_.transpose_block(emit_.address(staged_keys_, zero, depth), staged_keys_.width,
                              emit_.address(keys_, depth, column), keys_.width);
      });
    });
  }

  // Raw products to weights, in place, one row at a time. The register tile is `item_row` behind the first row of the
  // item and `offset` behind `column`, the first of the tile in memory.
  void emit_weights(Value item_row, Value offset, Value column, bool masked) {
    const RegisterTile& tile = emit_.tile();
    const Value first_row = emit_.add(item_.at(kBegin), item_row), first_column = emit_.add(column, offset);
    emit_.loop(emit_.integer(0), emit_.integer(tile.rows), 1, [&](Value row) {
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const Value step = emit_.integer(vector * tile.lanes);
        const Value address = emit_.address(weights_, row, step);
        Value product = emit_.load_lanes(address);
        if (params_.has_bias()) {
          const Value bias = emit_.address(bias_, emit_.add(item_row, row), emit_.add(offset, step));
          product = emit_.addf(product, emit_.load_lanes(bias));
        }
        const Value own = emit_.add(first_row, row), columns = emit_.count_from(emit_.add(first_column, step));
        Value weight = emit_.broadcast(item_.score(product, own, columns, item_.at(kHead)));
        weight = item_.dropped(weight, own, columns, item_.at(kHead));
        if (masked) {
          const Value valid = item_.valid(own, columns, item_.at(kHead));
          weight = emit_.select(emit_.broadcast(valid), weight, emit_.zero_lanes());
        }
        emit_.store_lanes(weight, address);
      }
    });
  }

  // The same of a head with softmax; the sums and totals of its rows become relative to the largest S of now.
  void emit_softmax(Value item_row, Value offset, Value column, bool masked) {
    const RegisterTile& tile = emit_.tile();
    const Value first_row = emit_.add(item_.at(kBegin), item_row), first_column = emit_.add(column, offset);
    const Value zero = emit_.integer(0);
    emit_.loop(zero, emit_.integer(tile.rows), 1, [&](Value row) {
      const Value own = emit_.add(item_row, row);
      std::vector<Value> scores, valid;
      Value most = item_.lowest();
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const Value step = emit_.integer(vector * tile.lanes);
        Value product = emit_.load_lanes(emit_.address(weights_, row, step));
        if (params_.has_bias())
          product = emit_.addf(product, emit_.load_lanes(emit_.address(bias_, own, emit_.add(offset, step))));
        const Value columns = emit_.count_from(emit_.add(first_column, step));
        Value score = item_.softmax_score(product, emit_.add(first_row, row), columns, item_.at(kHead));
        if (masked) {
          valid.push_back(emit_.broadcast(item_.valid(emit_.add(first_row, row), columns, item_.at(kHead))));
          score = emit_.select(valid.back(), score, item_.lowest());
        }
        scores.push_back(score);
        most = emit_.maxf(most, score);
      }
      const Value largest_at = emit_.address(largest_, zero, own), before = emit_.load_scalar(largest_at);
      const Value largest = emit_.maxf(before, emit_.max_of_lanes(most));
      emit_.store_scalar(largest, largest_at);
      const Value kept = emit_.exp(emit_.broadcast(emit_.subf(before, largest)));
      const Value totals_at = emit_.address(totals_, own, zero);
      Value total = emit_.mulf(emit_.load_lanes(totals_at), kept);
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const auto i = static_cast<size_t>(vector);
        Value weight = emit_.exp(emit_.subf(scores[i], emit_.broadcast(largest)));
        if (masked) weight = emit_.select(valid[i], weight, emit_.zero_lanes());
        total = emit_.addf(total, weight);
        const Value columns = emit_.count_from(emit_.add(first_column, emit_.integer(vector * tile.lanes)));
        weight = item_.dropped(weight, emit_.add(first_row, row), columns, item_.at(kHead));
        emit_.store_lanes(weight, emit_.address(weights_, row, emit_.integer(vector * tile.lanes)));
      }
      emit_.store_lanes(total, totals_at);
      emit_.loop(zero, emit_.integer(sums_.width), tile.lanes, [&](Value output) {
        const Value at = emit_.address(sums_, own, output);
        emit_.store_lanes(emit_.mulf(emit_.load_lanes(at), kept), at);
      });
    });
  }

  const HstuAttentionParams& params_;
  AttentionItem& item_;
  Emitter& emit_;
  int64_t output_vectors_ = 0;
  ScratchMatrix queries_, staged_keys_, keys_, values_, weights_, sums_, bias_;
  ScratchMatrix largest_, totals_;  // of rows of heads with softmax: S so far, and lanes of the sum of weights
};

}  // namespace

Status emit_attention_forward(AttentionItem& item, int64_t item_rows) { return ForwardEmitter(item, item_rows).emit(); }

}  // namespace hstujit
