// Products on the host.
//
// An item is a tile of the result, or of that of a sequence. It walks the sum in tiles: both factors' go to scratch as
// fp32, zeros behind their ends, and register tiles of products are added to the tile's sums. Then the epilogue, in
// place; results are rounded once. Tiles of the first row also add up the columns of b, or those of the first column
// the columns of a.
#include <algorithm>

#include "compiler/host/lift_lanes.h"
#include "compiler/host/operator.h"
#include "compiler/ir/region_functions.h"
#include "compiler/spec/gemm_spec.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

using mlir::Value;

constexpr int64_t kTileRows = 64, kTileColumns = 128, kTileDepth = 128;

// Coordinates of an item.
constexpr size_t kRow = 0, kRowEnd = 1, kColumn = 2, kColumnEnd = 3, kDepth = 4, kDepthEnd = 5, kSequence = 6;

// Sizes of a tile, whole register tiles and lanes.
struct TileSize {
  explicit TileSize(const RegisterTile& tile)
      : rows(round_up(kTileRows, tile.rows)), columns(round_up(kTileColumns, tile.columns())) {}

  int64_t rows, columns, depth = kTileDepth;
};

// Writes the body of the item function.
class GemmEmitter {
 public:
  GemmEmitter(const GemmSpec& spec, ItemFunction& function)
      : spec_(spec),
        gemm_(spec.interface()),
        signature_(spec.signature(Direction::kForward)),
        function_(function),
        emit_(function.emit),
        size_(emit_.tile()) {
    const int64_t lanes = emit_.tile().lanes;
    a_ = emit_.allocate(round_up(size_.rows, lanes), size_.depth);
    b_ = emit_.allocate(size_.depth, round_up(size_.columns, lanes));
    staged_ = emit_.allocate(std::max(size_.depth, b_.width), std::max(size_.depth, round_up(size_.rows, lanes)));
    sums_ = emit_.allocate(size_.rows, b_.width);
    if (gemm_.column_sums) column_sums_ = emit_.allocate(1, std::max(staged_.width, b_.width));
    for (const GemmOperand& operand : gemm_.operands) {
      if (operand.kind == GemmOperandKind::kVector)
        blocks_[operand.name] = emit_.allocate(1, round_up(gemm_.n, lanes) + b_.width);
      if (operand.kind == GemmOperandKind::kMatrix) blocks_[operand.name] = emit_.allocate(size_.rows, b_.width);
    }
  }

  Status emit() {
    HSTUJIT_ASSIGN_OR_RETURN(epilogue_, find_region_function(function_.regions, kEpilogue));
    rows_ = emit_.sub(at(kRowEnd), at(kRow));
    columns_ = emit_.sub(at(kColumnEnd), at(kColumn));
    const RegisterTile& tile = emit_.tile();
    const Value zero = emit_.integer(0);
    emit_.clear(sums_, emit_.integer(size_.rows));
    if (gemm_.column_sums) emit_.clear(column_sums_, emit_.integer(1));
    emit_.loop(at(kDepth), at(kDepthEnd), size_.depth, [&](Value depth) {
      const Value count = emit_.min(emit_.sub(at(kDepthEnd), depth), emit_.integer(size_.depth));
      copy_factor(gemm_.a, at(kRow), rows_, depth, count, a_, round_up(size_.rows, tile.lanes));
      copy_factor(gemm_.b, depth, count, at(kColumn), columns_, b_, size_.depth);
      if (gemm_.column_sums) add_columns(count);
      emit_.loop(zero, emit_.integer(size_.rows), tile.rows, [&](Value row) {
        emit_.loop(zero, emit_.integer(size_.columns), tile.columns(), [&](Value column) {
          emit_.multiply_tile(emit_.address(a_, row, zero), a_.width, emit_.address(b_, zero, column), b_.width,
                              emit_.address(sums_, row, column), sums_.width, tile.vectors, size_.depth,
                              /*accumulate=*/true);
        });
      });
    });
    HSTUJIT_RETURN_IF_ERROR(emit_epilogue());
    emit_.write_block(
        sums_, [&](Value) { return emit_.real(1); }, block("out", at(kRow), at(kColumn)), rows_, columns_);
    if (gemm_.column_sums) write_column_sums();
    return {};
  }

 private:
  Value at(size_t coordinate) const { return function_.coordinates[coordinate]; }
  // Block of a tensor, within the item's sequence where the tensor has an axis of sequences.
  TensorBlock block(const std::string& name, Value row, Value column) const {
    const Argument& argument = signature_[static_cast<size_t>(find_argument(signature_, name))];
    TensorBlock result{function_.argument(name), argument.dtype, {}, row, column};
    if (argument.shape.size() == 3) result.outer.push_back(at(kSequence));
    return result;
  }

  // `rows` times `columns` elements of the factor from (row, column) on, zeros behind them, up to `height` rows.
  void copy_factor(const GemmFactor& factor, Value row, Value rows, Value column, Value columns, ScratchMatrix to,
                   int64_t height) {
    const int64_t lanes = emit_.tile().lanes;
    const Value zero = emit_.integer(0);
    if (!factor.transposed) {
      emit_.clear(to, emit_.integer(height));
      emit_.copy_block(block(factor.name, row, column), rows, columns, to);
      return;
    }
    emit_.clear(staged_, emit_.integer(to.width));
    emit_.copy_block(block(factor.name, column, row), columns, rows, staged_);
    emit_.loop(zero, emit_.integer(height), lanes, [&](Value first) {
      emit_.loop(zero, emit_.integer(to.width), lanes, [&](Value second) {
        emit_.transpose_block(emit_.address(staged_, second, first), staged_.width, emit_.address(to, first, second),
                              to.width);
      });
    });
  }

  Value has_column_sums() { return emit_.lt(gemm_.column_sums->of_a ? at(kColumn) : at(kRow), emit_.integer(1)); }

  // Adds the columns of `count` rows of the factor that has just been copied.
  void add_columns(Value count) {
    const ScratchMatrix from = gemm_.column_sums->of_a ? staged_ : b_;
    emit_.when(has_column_sums(), [&] {
      emit_.loop(emit_.integer(0), count, 1, [&](Value row) {
        emit_.loop(emit_.integer(0), emit_.integer(from.width), emit_.tile().lanes, [&](Value column) {
          const Value sum = emit_.address(column_sums_, emit_.integer(0), column);
          emit_.store_lanes(emit_.addf(emit_.load_lanes(sum), emit_.load_lanes(emit_.address(from, row, column))), sum);
        });
      });
    });
  }

  void write_column_sums() {
    const GemmColumnSums& sums = *gemm_.column_sums;
    emit_.when(has_column_sums(), [&] {
      const Value scale = sums.scale.empty() ? emit_.real(1) : function_.argument(sums.scale);
      const Value row = gemm_.per_sequence() ? at(kSequence) : Value();
      emit_.write_block(
          column_sums_, [&](Value) { return scale; }, block(sums.name, row, sums.of_a ? at(kRow) : at(kColumn)),
          emit_.integer(1), sums.of_a ? rows_ : columns_);
    });
  }

  Status emit_epilogue() {
    const Value zero = emit_.integer(0);
    for (const GemmOperand& operand : gemm_.operands) {
      if (operand.kind == GemmOperandKind::kScalar) continue;
      const ScratchMatrix to = blocks_.at(operand.name);
      if (operand.kind == GemmOperandKind::kVector) {
        const Value row = gemm_.per_sequence() ? at(kSequence) : Value();
        emit_.copy_rows({function_.argument(operand.name), spec_.dtype(), gemm_.n, row, {}}, emit_.integer(1),
                        emit_.integer(1), to);
      } else {
        emit_.copy_block(block(operand.name, at(kRow), at(kColumn)), rows_, columns_, to);
      }
    }
    Status status;
    emit_.loop(zero, rows_, 1, [&](Value row) {
      emit_.loop(zero, columns_, emit_.tile().lanes, [&](Value column) {
        const Value address = emit_.address(sums_, row, column);
        Emitter::Values arguments = {emit_.load_lanes(address)};
        if (gemm_.takes_column) arguments.push_back(emit_.count_from(emit_.add(at(kColumn), column)));
        for (const GemmOperand& operand : gemm_.operands) {
          if (operand.kind == GemmOperandKind::kScalar) {
            arguments.push_back(function_.argument(operand.name));
            continue;
          }
          const ScratchMatrix from = blocks_.at(operand.name);
          const bool vector = operand.kind == GemmOperandKind::kVector;
          arguments.push_back(emit_.load_lanes(vector ? emit_.address(from, zero, emit_.add(at(kColumn), column))
                                                      : emit_.address(from, row, column)));
        }
        const auto results = emit_region(emit_, epilogue_, arguments);
        if (!results.ok()) {
          if (status.ok()) status = results.status();
          return;
        }
        emit_.store_lanes(emit_.broadcast((*results)[0]), address);
      });
    });
    return status;
  }

  const GemmSpec& spec_;
  const GemmInterface& gemm_;
  const Signature signature_;
  ItemFunction& function_;
  Emitter& emit_;
  const TileSize size_;
  ScratchMatrix a_, b_, staged_, sums_, column_sums_;
  std::map<std::string, ScratchMatrix> blocks_;  // of operands
  mlir::func::FuncOp epilogue_;
  Value rows_, columns_;
};

class HostGemm final : public HostOperator {
 public:
  HostGemm(OpSpecPtr spec, const RegisterTile& tile)
      : owner_(std::move(spec)), spec_(static_cast<const GemmSpec&>(*owner_)), size_(tile) {}

  Status emit(ItemFunction& function) override { return GemmEmitter(spec_, function).emit(); }

  Result<std::vector<WorkItem>> items(const Arguments& arguments) const override {
    const GemmInterface& gemm = spec_.interface();
    std::vector<WorkItem> items;
    if (!gemm.per_sequence()) {
      const int64_t depth = arguments.size(gemm.a.name, gemm.a.transposed ? 0 : 1);
      add_items(0, arguments.size("out", 0), 0, depth, 0, items);
      return items;
    }
    const int64_t sequences = arguments.symbol("B");
    const std::vector<int64_t> offsets =
        clamped_offsets(arguments, "seq_offsets", sequences, arguments.size(gemm.a.name, 0));
    for (int64_t b = 0; b < sequences; ++b) {
      const int64_t first = offsets[static_cast<size_t>(b)], end = offsets[static_cast<size_t>(b) + 1];
      if (gemm.sums_rows()) {
        add_items(0, gemm.m, first, end, b, items);
      } else {
        add_items(first, end, 0, gemm.k, b, items);
      }
    }
    return items;
  }

 private:
  // Adds the items of the rows [row, row_end) of a result.
  void add_items(int64_t row, int64_t row_end, int64_t depth, int64_t depth_end, int64_t sequence,
                 std::vector<WorkItem>& items) const {
    const int64_t columns = spec_.interface().n;
    for (; row < row_end; row += size_.rows) {
      const int64_t end = std::min(row + size_.rows, row_end);
      for (int64_t column = 0; column < columns; column += size_.columns) {
        const int64_t column_end = std::min(column + size_.columns, columns);
        items.push_back({{row, end, column, column_end, depth, depth_end, sequence},
                         static_cast<double>(end - row) * static_cast<double>(depth_end - depth)});
      }
    }
  }

  const OpSpecPtr owner_;
  const GemmSpec& spec_;
  const TileSize size_;
};

}  // namespace

Result<HostOperatorPtr> make_host_gemm(OpSpecPtr spec, Direction, const RegisterTile& tile) {
  return HostOperatorPtr(std::make_unique<HostGemm>(std::move(spec), tile));
}

}  // namespace hstujit
