// Attention forward on the host.
//
// An item is a block of rows of one sequence and head. It walks the columns that the block may see in tiles: a tile of
// k (transposed) and v goes to scratch as fp32, then, for each register tile of rows and columns that mask_tile does
// not rule out, scores = q * kT, weights = score(scores) under the mask, sums += weights * v. Everything stays in fp32,
// the weights too, and the sums are rounded once: closer to the reference than a tensor core, which rounds the weights
// to 16 bits.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/host/attention.h"
#include "compiler/host/lift_lanes.h"
#include "compiler/passes/region_functions.h"
#include "compiler/spec/hstu_attention/attention_spec.h"
#include "compiler/spec/limits.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

using mlir::Value;

// Rows of one item and columns of one tile, at most. A tile is packed once for all rows of the item, so more rows cost
// less packing; fewer balance better over threads.
constexpr int64_t kItemRows = 256;
constexpr int64_t kTileColumns = 256;

// Coordinates of an item.
// kQueryStart: row of q and out that would hold the sequence's row 0.
enum Coordinate : size_t { kSequenceStart, kSequenceRows, kTargets, kHead, kRowBegin, kRowEnd, kQueryStart };

struct Regions {
  mlir::func::FuncOp mask_valid, mask_tile, mask_columns, score;

  static Result<Regions> find(mlir::ModuleOp module) {
    Regions regions;
    HSTUJIT_ASSIGN_OR_RETURN(regions.mask_valid, find_region_function(module, kMaskValid));
    HSTUJIT_ASSIGN_OR_RETURN(regions.mask_tile, find_region_function(module, kMaskTile));
    HSTUJIT_ASSIGN_OR_RETURN(regions.mask_columns, find_region_function(module, kMaskColumns));
    HSTUJIT_ASSIGN_OR_RETURN(regions.score, find_region_function(module, kScore));
    return regions;
  }
};

// Writes the body of the item function.
class AttentionEmitter {
 public:
  AttentionEmitter(const HstuAttentionParams& params, ItemFunction& function, const Regions& regions, int64_t item_rows)
      : params_(params), emit_(function.emit), function_(function), regions_(regions), item_rows_(item_rows) {
    const RegisterTile& tile = emit_.tile();
    output_vectors_ = std::min(tile.vectors, ceil_div(params.hidden_dim, tile.lanes));
    const int64_t depth = round_up(params.attn_dim, tile.lanes);
    const int64_t output = round_up(params.hidden_dim, output_vectors_ * tile.lanes);
    queries_ = emit_.allocate(item_rows, depth);
    staged_keys_ = emit_.allocate(tile.lanes, depth);
    keys_ = emit_.allocate(depth, kTileColumns);
    values_ = emit_.allocate(kTileColumns, output);
    weights_ = emit_.allocate(tile.rows, tile.columns());
    sums_ = emit_.allocate(item_rows, output);
  }

  Status emit() {
    const Value begin = at(kRowBegin), end = at(kRowEnd);
    const Value rows = emit_.sub(end, begin);
    const Value padded_rows = emit_round_up(rows, emit_.tile().rows);
    emit_.copy_rows(rows_of("q", params_.attn_dim, emit_.add(at(kQueryStart), begin)), rows, padded_rows, queries_);
    emit_.loop(emit_.integer(0), padded_rows, 1, [&](Value row) {
      emit_.loop(emit_.integer(0), emit_.integer(sums_.width), emit_.tile().lanes,
                 [&](Value column) { emit_.store_lanes(emit_.zero_lanes(), emit_.address(sums_, row, column)); });
    });

    const Value last = emit_.sub(end, emit_.integer(1));
    const auto columns = region(regions_.mask_columns, {begin, last, at(kSequenceRows), at(kTargets)});
    const Value first_column = emit_.max(columns[0], emit_.integer(0));
    const Value column_end = emit_.min(columns[1], at(kSequenceRows));
    emit_.loop(first_column, column_end, kTileColumns, [&](Value column) {
      const Value tile_end = emit_.min(emit_.add(column, emit_.integer(kTileColumns)), column_end);
      emit_.when(may_see(begin, last, column, tile_end).may, [&] { emit_tile(column, tile_end, padded_rows); });
    });
    emit_.write_rows(sums_, output_factor(), rows_of("out", params_.hidden_dim, emit_.add(at(kQueryStart), begin)),
                     rows);
    return status_;
  }

 private:
  struct Visibility {
    Value must, may;
  };

  // Rows of this item's head.
  TensorRows rows_of(std::string_view argument, int64_t width, Value first_row) const {
    return {function_.argument(argument), params_.dtype, width, first_row, at(kHead)};
  }

  Value at(Coordinate coordinate) const { return function_.coordinates[coordinate]; }

  Value emit_round_up(Value value, int64_t multiple) {
    const Value whole = emit_.integer(multiple);
    return emit_.mul(emit_.div(emit_.add(value, emit_.integer(multiple - 1)), whole), whole);
  }

  // A region that cannot be emitted is remembered; what is built after it is thrown away.
  Emitter::Values region(mlir::func::FuncOp function, const Emitter::Values& arguments) {
    auto results = emit_region(emit_, function, arguments);
    if (results.ok()) return std::move(results).value();
    if (status_.ok()) status_ = results.status();
    Emitter::Values zeros;
    for (mlir::Type type : function.getResultTypes()) {
      zeros.push_back(type.isIndex() ? emit_.integer(0) : type.isInteger(1) ? emit_.truth(false) : emit_.zero_lanes());
    }
    return zeros;
  }

  // Rows first to last, both counted, and columns from `column` to before `column_end`.
  Visibility may_see(Value first_row, Value last_row, Value column, Value column_end) {
    const auto result =
        region(regions_.mask_tile,
               {first_row, last_row, column, emit_.sub(column_end, emit_.integer(1)), at(kSequenceRows), at(kTargets)});
    return {result[0], result[1]};
  }

  void emit_tile(Value column, Value column_end, Value padded_rows) {
    const RegisterTile& tile = emit_.tile();
    const Value count = emit_.sub(column_end, column);
    const Value padded_count = emit_round_up(count, tile.columns());
    const Value first = emit_.add(at(kSequenceStart), column);
    pack_keys(first, count, padded_count);
    emit_.copy_rows(rows_of("v", params_.hidden_dim, first), count, padded_count, values_);

    const Value end = at(kRowEnd);
    emit_.loop(emit_.integer(0), padded_rows, tile.rows, [&](Value row) {
      const Value first_row = emit_.add(at(kRowBegin), row);
      const Value last_row =
          emit_.sub(emit_.min(emit_.add(first_row, emit_.integer(tile.rows)), end), emit_.integer(1));
      emit_.loop(emit_.integer(0), padded_count, tile.columns(), [&](Value offset) {
        const Value begin = emit_.add(column, offset);
        const Value padded_end = emit_.add(begin, emit_.integer(tile.columns()));
        const Visibility visible = may_see(first_row, last_row, begin, emit_.min(padded_end, column_end));
        emit_.when(visible.may, [&] {
          const Value depth_zero = emit_.integer(0);
          emit_.multiply_tile(emit_.address(queries_, row, depth_zero), queries_.width,
                              emit_.address(keys_, depth_zero, offset), keys_.width, weights_at(depth_zero),
                              weights_.width, tile.vectors, params_.attn_dim,
                              /*accumulate=*/false);
          // Padding must have weight zero, which only the mask gives it whatever the score is.
          const Value whole = emit_.both(visible.must, emit_.le(padded_end, column_end));
          emit_.when(
              whole, [&] { emit_weights(first_row, begin, false); }, [&] { emit_weights(first_row, begin, true); });
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
      emit_.copy_rows(rows_of("k", params_.attn_dim, emit_.add(first, column)), present, whole, staged_keys_);
      emit_.loop(zero, emit_.integer(staged_keys_.width), lanes, [&](Value depth) {
        emit_.transpose_block(emit_.address(staged_keys_, zero, depth), staged_keys_.width,
                              emit_.address(keys_, depth, column), keys_.width);
      });
    });
  }

  // Raw products to weights, in place, one row at a time.
  void emit_weights(Value first_row, Value first_column, bool masked) {
    const RegisterTile& tile = emit_.tile();
    const Value alpha = function_.argument("alpha");
    emit_.loop(emit_.integer(0), emit_.integer(tile.rows), 1, [&](Value row) {
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        const Value step = emit_.integer(vector * tile.lanes);
        const Value address = emit_.address(weights_, row, step);
        Value weight = emit_.broadcast(region(regions_.score, {emit_.load_lanes(address), alpha})[0]);
        if (masked) {
          const Value columns = emit_.count_from(emit_.add(first_column, step));
          const Value valid =
              region(regions_.mask_valid, {emit_.add(first_row, row), columns, at(kSequenceRows), at(kTargets)})[0];
          weight = emit_.select(emit_.broadcast(valid), weight, emit_.zero_lanes());
        }
        emit_.store_lanes(weight, address);
      }
    });
  }

  // 1 / scaling_seqlen, or 1 / max_seq_len where that is not positive.
  Value output_factor() {
    const Value given = function_.argument("scaling_seqlen");
    const Value scale = emit_.select(emit_.gt(given, emit_.integer(0)), given, function_.argument("max_seq_len"));
    const Value integer =
        mlir::arith::IndexCastOp::create(emit_.builder(), emit_.location(), emit_.builder().getI64Type(), scale);
    const Value real =
        mlir::arith::SIToFPOp::create(emit_.builder(), emit_.location(), emit_.builder().getF32Type(), integer);
    return emit_.divf(emit_.real(1), real);
  }

  const HstuAttentionParams& params_;
  Emitter& emit_;
  ItemFunction& function_;
  Regions regions_;
  int64_t item_rows_;
  int64_t output_vectors_ = 0;
  ScratchMatrix queries_, staged_keys_, keys_, values_, weights_, sums_;
  Status status_;
};

// Where the rows of each sequence begin in a tensor of so many rows, and where the last ones end. Offsets that decrease
// or pass the end are brought back, so that sequences lie within the tensor and do not overlap.
std::vector<int64_t> clamped_offsets(const Arguments& arguments, std::string_view name, int64_t sequences,
                                     int64_t rows) {
  std::vector<int64_t> offsets;
  for (int64_t b = 0; b <= sequences; ++b) {
    offsets.push_back(std::clamp(arguments.element(name, b), offsets.empty() ? int64_t{0} : offsets.back(), rows));
  }
  return offsets;
}

class HostAttention final : public HostOperator {
 public:
  HostAttention(HstuAttentionParams params, QueryRows query_rows, const RegisterTile& tile)
      : params_(std::move(params)), query_rows_(query_rows), item_rows_(round_down(kItemRows, tile.rows)) {}

  Status emit(ItemFunction& function) override {
    HSTUJIT_ASSIGN_OR_RETURN(const Regions regions, Regions::find(function.regions));
    return AttentionEmitter(params_, function, regions, item_rows_).emit();
  }

  Result<std::vector<WorkItem>> items(const Arguments& arguments) const override;

 private:
  // The rows of q and out of each sequence, as clamped_offsets gives them.
  std::vector<int64_t> query_offsets(const Arguments& arguments, const std::vector<int64_t>& offsets) const;

  HstuAttentionParams params_;
  QueryRows query_rows_;
  int64_t item_rows_;
};

std::vector<int64_t> HostAttention::query_offsets(const Arguments& arguments,
                                                  const std::vector<int64_t>& offsets) const {
  if (query_rows_ == QueryRows::kAll) return offsets;
  const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
  if (query_rows_ == QueryRows::kLastJagged) {
    return clamped_offsets(arguments, "seq_offsets_q", sequences, arguments.size("q", 0));
  }
  std::vector<int64_t> result;
  for (int64_t b = 0; b <= sequences; ++b) result.push_back(b * arguments.integer("max_delta_len"));
  return result;
}

Result<std::vector<WorkItem>> HostAttention::items(const Arguments& arguments) const {
  const int64_t sequences = arguments.symbol("B"), rows = arguments.size("k", 0);
  if (arguments.size("q", 0) > 0 && arguments.integer("scaling_seqlen") <= 0 && arguments.integer("max_seq_len") <= 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("max_seq_len is {}; it must be at least 1 where scaling_seqlen is not positive",
                              arguments.integer("max_seq_len")));
  }
  std::vector<WorkItem> items;
  const std::vector<int64_t> offsets = clamped_offsets(arguments, "seq_offsets", sequences, rows);
  const std::vector<int64_t> queries = query_offsets(arguments, offsets);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    const auto b = static_cast<size_t>(sequence);
    const int64_t start = offsets[b], n = offsets[b + 1] - start;
    const int64_t first = n - (queries[b + 1] - queries[b]);  // the first row that q has
    if (n > kMaxSeqLen) {
      return Status(Code::kUnsupported,
                    fmt::format("sequence {} has {} rows; the host backend takes at most {}", sequence, n, kMaxSeqLen));
    }
    const int64_t targets =
        params_.num_targets ? std::clamp<int64_t>(arguments.element("num_targets", sequence), 0, n) : 0;
    for (int64_t head = 0; head < params_.heads; ++head) {
      // Rows of q before the sequence: rows of an empty one, which see nothing.
      for (int64_t begin = 0; begin < -first; begin += item_rows_) {
        items.push_back({{start, 0, 0, head, begin, std::min(begin + item_rows_, -first), queries[b]}, 0});
      }
      for (int64_t begin = std::max<int64_t>(first, 0); begin < n; begin += item_rows_) {
        const int64_t row_end = std::min(begin + item_rows_, n);
        const double columns = static_cast<double>(params_.causal ? row_end : n);
        items.push_back({{start, n, targets, head, begin, row_end, queries[b] - first},
                         static_cast<double>(row_end - begin) * columns});
      }
    }
  }
  return items;
}

}  // namespace

Result<HostOperatorPtr> make_host_attention(const OpSpec& spec, Direction direction, const RegisterTile& tile) {
  if (direction != Direction::kForward) {
    return Status(Code::kUnsupported,
                  fmt::format("direction is \"backward\"; the host backend computes {} forward only", spec.op()));
  }
  const auto& attention = static_cast<const AttentionSpec&>(spec);
  return HostOperatorPtr(std::make_unique<HostAttention>(attention.params(), attention.query_rows(), tile));
}

Result<HostOperatorPtr> make_host_hstu_attention(OpSpecPtr spec, Direction direction, const RegisterTile& tile) {
  return make_host_attention(*spec, direction, tile);
}

}  // namespace hstujit
