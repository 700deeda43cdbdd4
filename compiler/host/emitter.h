// Loops, vectors and scratch memory: what the operators of the host backend are written with, on top of Ops.
//
// "Lanes" is a vector of RegisterTile::lanes elements. Scratch is one fp32 buffer per thread, handed out at compile
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/host/target.h"
#include "compiler/ir/ops.h"
#include "compiler/spec/types.h"

namespace hstujit {

// A matrix in scratch memory: rows of `width` fp32 values from `base` on.
struct ScratchMatrix {
  int64_t base = 0;
  int64_t width = 0;
};

// Rows of a tensor argument (rows, width) or (rows, heads, width) from one on; converted from and to its data type.
struct TensorRows {
  mlir::Value tensor;
  DataType dtype = DataType::kFp32;
  int64_t width = 0;
  mlir::Value first_row;  // null for a tensor (width), which is one row
  mlir::Value head;       // null where there are no heads
  int64_t first_column = 0;
};

// A block of the last two axes of a tensor argument, or of its only one, whose sizes are known at run time only.
struct TensorBlock {
  mlir::Value tensor;
  DataType dtype = DataType::kFp32;
  mlir::SmallVector<mlir::Value> outer;  // positions along the axes before the last two
  mlir::Value first_row;                 // null where there is one axis
  mlir::Value first_column;
};

class Emitter : public Ops {
 public:
  using Values = mlir::SmallVector<mlir::Value>;

  Emitter(mlir::OpBuilder& builder, mlir::Location location, RegisterTile tile) : Ops(builder, location), tile_(tile) {}

  const RegisterTile& tile() const { return tile_; }

  // for (i = begin; i < end; i += step) body(i)
  void loop(Value begin, Value end, int64_t step, const std::function<void(Value)>& body);
  // The same, carrying values from one iteration to the next; returns the last ones.
  Values loop(Value begin, Value end, int64_t step, const Values& initial,
              const std::function<Values(Value, const Values&)>& body);
  void when(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise = nullptr);

  mlir::VectorType lanes_of(mlir::Type element, int64_t count) const;
  mlir::VectorType lanes_of(mlir::Type element) const { return lanes_of(element, tile_.lanes); }
  // A scalar in every lane. An index becomes i32: positions in a sequence fit (compiler/spec/limits.h), and twice as
  // many fit in a register.
  Value broadcast(Value scalar);
  Value zero_lanes() { return broadcast(real(0)); }
  // first, first + 1, first + 2, ... as i32 lanes; `first` is an index.
  Value count_from(Value first);
  // Values rounded to that type, which stay in fp32.
  Value rounded(Value lanes, DataType dtype) { return to_fp32(from_fp32(lanes, dtype), dtype); }
  // a * b + c, contracted where the processor can.
  Value multiply_add(Value a, Value b, Value c);

  // Scratch memory.
  void set_scratch(Value memref) { scratch_ = memref; }
  ScratchMatrix allocate(int64_t rows, int64_t width);
  int64_t scratch_size() const { return scratch_size_; }
  Value address(ScratchMatrix matrix, Value row, Value column);
  Value load_scalar(Value address);
  Value load_lanes(Value address);
  void store_lanes(Value lanes, Value address);
  void store_scalar(Value scalar, Value address) { store_element(scalar, scratch_, address); }

  // Sets the first rows to zero; their width is a multiple of the lanes.
  void clear(ScratchMatrix matrix, Value rows);
  // Copies `count` rows of `from` into `to`, and sets the rows from there to `padded_count` to zero.
  void copy_rows(const TensorRows& from, Value count, Value padded_count, ScratchMatrix to);
  // Factor of a row of a matrix (fp32).
  using RowFactor = std::function<Value(Value row)>;
  // Writes `count` rows of `from`, times the factor of each, each value rounded once.
  void write_rows(ScratchMatrix from, const RowFactor& factor, const TensorRows& to, Value count);
  // The same of blocks of `rows` and `columns`. copy_block leaves the rest of `to` as it is.
  void copy_block(const TensorBlock& from, Value rows, Value columns, ScratchMatrix to);
  void write_block(ScratchMatrix from, const RowFactor& factor, const TensorBlock& to, Value rows, Value columns);
  void clear_block(const TensorBlock& to, Value rows, Value columns);

  // The elements of `positions`, an index or lanes of i32, fp32 or i64 of integers: of a tensor (rows), or of a column
  // of (rows, columns), whose row `first` has position 0. A position outside of [0, count) gives 0; `count` is above 0.
  Value read_rows(Value tensor, DataType dtype, Value first, Value column, Value count, Value positions);
  // The same of a table: a position outside of it gives the nearest element.
  Value read_entries(Value tensor, DataType dtype, Value column, Value count, Value positions);
  // The elements of pairs of a block, whose outer axes alone count: of `rows` and `columns`, of which one is an index
  // and the other one may be lanes of i32. A pair outside of [0, count) gives 0; `count` is above 0.
  Value read_pairs(const TensorBlock& of, Value rows, Value columns, Value count);
  // A number of the intervals (heads, numbers, rows) of `positions`, in their type, from the row `first` on. A position
  // outside of [0, count) gives that of the nearest row.
  Value read_intervals(Value tensor, Value head, int64_t number, Value first, Value count, Value positions);
  // Adds each of `lanes` to the scratch memory at `address` plus its position, an index or lanes of i32.
  void scatter(Value lanes, Value address, Value positions);
  // One element of a memref.
  Value load_element(Value memref, Value index);
  void store_element(Value scalar, Value memref, Value index);
  Value sum_lanes(Value lanes);
  Value max_of_lanes(Value lanes);

  // to[column][row] = from[row][column] for one block of lanes x lanes; the arguments are addresses of corners.
  void transpose_block(Value from, int64_t from_width, Value to, int64_t to_width);

  // c[row][column] += sum over k of a[row][k] * b[k][column] over one register tile, k from 0 to `depth`.
  // `a`, `b`, `c` are addresses of corners; `accumulate` false starts from zero instead of c.
  void multiply_tile(Value a, int64_t a_width, Value b, int64_t b_width, Value c, int64_t c_width, int64_t vectors,
                     int64_t depth, bool accumulate);

 private:
  // Where element (row, column) of `rows` is, counted from its first row, and of `block`, from its corner.
  Values place(const TensorRows& rows, Value row, Value column);
  Values place(const TensorBlock& block, Value row, Value column);
  Value offset(Value address, int64_t by) { return by == 0 ? address : add(address, integer(by)); }
  Value to_fp32(Value lanes, DataType dtype);
  Value from_fp32(Value lanes, DataType dtype);
  // Calls body(column, count) for every group of lanes of a row; the last may be shorter.
  void for_each_group(int64_t width, const std::function<void(Value, int64_t)>& body);
  // The same of a width that is known at run time: what is no whole group comes one by one.
  void for_each_group(Value width, const std::function<void(Value, int64_t)>& body);
  // Lane `lane` of positions as an index; `positions` where that is one.
  Value position_of(Value positions, int64_t lane);
  // fp32, or i64 of integers: what load(position) gives in the type in memory, for each of the positions.
  Value gather(DataType dtype, Value positions, const std::function<Value(Value)>& load);
  // `count` values of scratch times `factor`, rounded.
  Value rounded(Value address, int64_t count, Value factor, DataType dtype);

  RegisterTile tile_;
  Value scratch_;
  int64_t scratch_size_ = 0;
};

// The type that a tensor of this data type has in memory: bf16 is handled as 16-bit integers, so that no processor
// needs instructions or library calls for it.
mlir::Type storage_type(mlir::Builder& builder, DataType dtype);

}  // namespace hstujit
