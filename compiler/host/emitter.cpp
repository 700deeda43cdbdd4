#include "compiler/host/emitter.h"

#include "compiler/support/integers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hstujit {

using mlir::Value;

namespace {

// Cache lines of fp32 values: every matrix in scratch begins on one.
constexpr int64_t kScratchAlignment = 16;

constexpr auto kContract = mlir::arith::FastMathFlags::contract;

}  // namespace

mlir::Type storage_type(mlir::Builder& builder, DataType dtype) {
  switch (dtype) {
    case DataType::kBf16:
      return builder.getI16Type();
    case DataType::kFp16:
      return builder.getF16Type();
    case DataType::kFp32:
      return builder.getF32Type();
    case DataType::kInt32:
      return builder.getI32Type();
    case DataType::kInt64:
      return builder.getI64Type();
  }
  return {};
}

void Emitter::loop(Value begin, Value end, int64_t step, const std::function<void(Value)>& body) {
  loop(begin, end, step, Values(), [&](Value i, const Values&) {
    body(i);
    return Values();
  });
}

Emitter::Values Emitter::loop(Value begin, Value end, int64_t step, const Values& initial,
                              const std::function<Values(Value, const Values&)>& body) {
  auto loop = mlir::scf::ForOp::create(builder(), location(), begin, end, integer(step), initial);
  mlir::OpBuilder::InsertionGuard guard(builder());
  builder().setInsertionPointToStart(loop.getBody());
  const auto carried = loop.getRegionIterArgs();
  const Values results = body(loop.getInductionVar(), Values(carried.begin(), carried.end()));
  // A loop that carries nothing was created with its terminator.
  if (!initial.empty()) mlir::scf::YieldOp::create(builder(), location(), results);
  return Values(loop.getResults().begin(), loop.getResults().end());
}

void Emitter::when(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  auto branch = mlir::scf::IfOp::create(builder(), location(), condition, otherwise != nullptr);
  mlir::OpBuilder::InsertionGuard guard(builder());
  builder().setInsertionPointToStart(branch.thenBlock());
  then();
  if (otherwise == nullptr) return;
  builder().setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

mlir::VectorType Emitter::lanes_of(mlir::Type element, int64_t count) const {
  return mlir::VectorType::get({count}, element);
}

Value Emitter::broadcast(Value scalar) {
  if (mlir::isa<mlir::VectorType>(scalar.getType())) return scalar;
  if (scalar.getType().isIndex()) {
    scalar = mlir::arith::IndexCastOp::create(builder(), location(), builder().getI32Type(), scalar);
  }
  return mlir::vector::BroadcastOp::create(builder(), location(), lanes_of(scalar.getType()), scalar);
}

Value Emitter::count_from(Value first) {
  mlir::SmallVector<int32_t> steps(tile_.lanes);
  for (int64_t i = 0; i < tile_.lanes; ++i) steps[i] = static_cast<int32_t>(i);
  const Value counting = mlir::arith::ConstantOp::create(builder(), location(), builder().getI32VectorAttr(steps));
  return add(broadcast(first), counting);
}

Value Emitter::multiply_add(Value a, Value b, Value c) {
  const Value product = mlir::arith::MulFOp::create(builder(), location(), a, b, kContract);
  return mlir::arith::AddFOp::create(builder(), location(), product, c, kContract);
}

ScratchMatrix Emitter::allocate(int64_t rows, int64_t width) {
  const ScratchMatrix matrix{scratch_size_, width};
  scratch_size_ = round_up(scratch_size_ + rows * width, kScratchAlignment);
  return matrix;
}

Value Emitter::address(ScratchMatrix matrix, Value row, Value column) {
  return add(add(mul(row, integer(matrix.width)), column), integer(matrix.base));
}

Value Emitter::load_scalar(Value address) {
  return mlir::memref::LoadOp::create(builder(), location(), scratch_, address);
}

Value Emitter::load_lanes(Value address) {
  return mlir::vector::LoadOp::create(builder(), location(), lanes_of(builder().getF32Type()), scratch_, address);
}

void Emitter::store_lanes(Value lanes, Value address) {
  mlir::vector::StoreOp::create(builder(), location(), lanes, scratch_, address);
}

void Emitter::for_each_group(int64_t width, const std::function<void(Value, int64_t)>& body) {
  const int64_t whole = round_down(width, tile_.lanes);
  if (whole > 0) loop(integer(0), integer(whole), tile_.lanes, [&](Value column) { body(column, tile_.lanes); });
  if (whole < width) body(integer(whole), width - whole);
}

Value Emitter::to_fp32(Value lanes, DataType dtype) {
  const int64_t count = mlir::cast<mlir::VectorType>(lanes.getType()).getNumElements();
  const mlir::Type fp32 = lanes_of(builder().getF32Type(), count);
  if (dtype == DataType::kFp16) return mlir::arith::ExtFOp::create(builder(), location(), fp32, lanes);
  if (dtype != DataType::kBf16) return lanes;
  const mlir::VectorType bits_type = lanes_of(builder().getI32Type(), count);
  const Value bits = mlir::arith::ExtUIOp::create(builder(), location(), bits_type, lanes);
  const Value sixteen =
      mlir::arith::ConstantOp::create(builder(), location(), mlir::DenseElementsAttr::get(bits_type, int32_t{16}));
  const Value high = mlir::arith::ShLIOp::create(builder(), location(), bits, sixteen);
  return mlir::arith::BitcastOp::create(builder(), location(), fp32, high);
}

Value Emitter::from_fp32(Value lanes, DataType dtype) {
  const int64_t count = mlir::cast<mlir::VectorType>(lanes.getType()).getNumElements();
  if (dtype == DataType::kFp16) {
    return mlir::arith::TruncFOp::create(builder(), location(), lanes_of(builder().getF16Type(), count), lanes);
  }
  if (dtype != DataType::kBf16) return lanes;
  const mlir::VectorType bits_type = lanes_of(builder().getI32Type(), count);
  const auto constant = [&](int32_t value) -> Value {
    return mlir::arith::ConstantOp::create(builder(), location(), mlir::DenseElementsAttr::get(bits_type, value));
  };
  // To nearest, ties to even: add half of the last kept bit, minus one when that bit is even. A NaN must not be carried
  // into an infinity, so it keeps its upper half and becomes quiet.
  const Value bits = mlir::arith::BitcastOp::create(builder(), location(), bits_type, lanes);
  const Value high = mlir::arith::ShRUIOp::create(builder(), location(), bits, constant(16));
  const Value odd = both(high, constant(1));
  const Value rounded =
      mlir::arith::ShRUIOp::create(builder(), location(), add(add(bits, constant(0x7fff)), odd), constant(16));
  const Value is_nan =
      mlir::arith::CmpFOp::create(builder(), location(), mlir::arith::CmpFPredicate::UNO, lanes, lanes);
  const Value result = select(is_nan, either(high, constant(0x40)), rounded);
  return mlir::arith::TruncIOp::create(builder(), location(), lanes_of(builder().getI16Type(), count), result);
}

Emitter::Values Emitter::place(const TensorRows& rows, Value row, Value column) {
  if (rows.first_column != 0) column = add(column, integer(rows.first_column));
  if (!rows.first_row) return {column};
  const Value absolute = add(rows.first_row, row);
  return rows.head ? Values{absolute, rows.head, column} : Values{absolute, column};
}

void Emitter::clear(ScratchMatrix matrix, Value rows) {
  loop(integer(0), rows, 1, [&](Value row) {
    loop(integer(0), integer(matrix.width), tile_.lanes,
         [&](Value column) { store_lanes(zero_lanes(), address(matrix, row, column)); });
  });
}

void Emitter::copy_rows(const TensorRows& from, Value count, Value padded_count, ScratchMatrix to) {
  const mlir::Type element = storage_type(builder(), from.dtype);
  loop(integer(0), count, 1, [&](Value row) {
    for_each_group(from.width, [&](Value column, int64_t lanes) {
      const Value values = mlir::vector::LoadOp::create(builder(), location(), lanes_of(element, lanes), from.tensor,
                                                        place(from, row, column));
      store_lanes(to_fp32(values, from.dtype), address(to, row, column));
    });
  });
  loop(count, padded_count, 1, [&](Value row) {
    for_each_group(from.width, [&](Value column, int64_t lanes) {
      const mlir::VectorType type = lanes_of(builder().getF32Type(), lanes);
      store_lanes(mlir::arith::ConstantOp::create(builder(), location(), mlir::DenseElementsAttr::get(type, 0.0F)),
                  address(to, row, column));
    });
  });
}

Value Emitter::rounded(Value address, int64_t count, Value factor, DataType dtype) {
  const mlir::VectorType type = lanes_of(builder().getF32Type(), count);
  const Value values = mlir::vector::LoadOp::create(builder(), location(), type, scratch_, address);
  const Value factors = mlir::vector::BroadcastOp::create(builder(), location(), type, factor);
  return from_fp32(mulf(values, factors), dtype);
}

void Emitter::write_rows(ScratchMatrix from, const RowFactor& factor, const TensorRows& to, Value count) {
  loop(integer(0), count, 1, [&](Value row) {
    const Value times = factor(row);
    for_each_group(to.width, [&](Value column, int64_t lanes) {
      mlir::vector::StoreOp::create(builder(), location(), rounded(address(from, row, column), lanes, times, to.dtype),
                                    to.tensor, place(to, row, column));
    });
  });
}

void Emitter::transpose_block(Value from, int64_t from_width, Value to, int64_t to_width) {
  const int64_t lanes = tile_.lanes;
  Values rows;
  for (int64_t i = 0; i < lanes; ++i) rows.push_back(load_lanes(offset(from, i * from_width)));
  // One perfect shuffle of the rows' elements per bit of a position moves the row's number into the lane's and back.
  mlir::SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, lanes + i});
    high.append({lanes / 2 + i, lanes + lanes / 2 + i});
  }
  for (int64_t span = lanes; span > 1; span /= 2) {
    Values next;
    for (int64_t i = 0; i < lanes / 2; ++i) {
      next.push_back(mlir::vector::ShuffleOp::create(builder(), location(), rows[i], rows[i + lanes / 2], low));
      next.push_back(mlir::vector::ShuffleOp::create(builder(), location(), rows[i], rows[i + lanes / 2], high));
    }
    rows = next;
  }
  for (int64_t i = 0; i < lanes; ++i) store_lanes(rows[i], offset(to, i * to_width));
}

void Emitter::multiply_tile(Value a, int64_t a_width, Value b, int64_t b_width, Value c, int64_t c_width,
                            int64_t vectors, int64_t depth, bool accumulate) {
  Values sums;
  for (int64_t row = 0; row < tile_.rows; ++row) {
    for (int64_t vector = 0; vector < vectors; ++vector) {
      sums.push_back(accumulate ? load_lanes(offset(c, row * c_width + vector * tile_.lanes)) : zero_lanes());
    }
  }
  sums = loop(integer(0), integer(depth), 1, sums, [&](Value k, const Values& previous) {
    Values right, next;
    const Value b_row = add(b, mul(k, integer(b_width)));
    for (int64_t vector = 0; vector < vectors; ++vector)
      right.push_back(load_lanes(offset(b_row, vector * tile_.lanes)));
    for (int64_t row = 0; row < tile_.rows; ++row) {
      const Value left = broadcast(load_scalar(offset(add(a, k), row * a_width)));
      for (int64_t vector = 0; vector < vectors; ++vector) {
        next.push_back(multiply_add(left, right[vector], previous[row * vectors + vector]));
      }
    }
    return next;
  });
  for (int64_t row = 0; row < tile_.rows; ++row) {
    for (int64_t vector = 0; vector < vectors; ++vector) {
      store_lanes(sums[row * vectors + vector], offset(c, row * c_width + vector * tile_.lanes));
    }
  }
}

}  // namespace hstujit
