// Blocks of tensors whose width is no constant, and single elements.
#include "compiler/host/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hstujit {

using mlir::Value;

Emitter::Values Emitter::place(const TensorBlock& block, Value row, Value column) {
  Values place = block.outer;
  if (block.first_row) place.push_back(add(block.first_row, row));
  place.push_back(add(block.first_column, column));
  return place;
}

void Emitter::for_each_group(Value width, const std::function<void(Value, int64_t)>& body) {
  const int64_t lanes = tile_.lanes;
  const Value whole = mul(div(width, integer(lanes)), integer(lanes));
  loop(integer(0), whole, lanes, [&](Value column) { body(column, lanes); });
  loop(whole, width, 1, [&](Value column) { body(column, 1); });
}

void Emitter::copy_block(const TensorBlock& from, Value rows, Value columns, ScratchMatrix to) {
  const mlir::Type element = storage_type(builder(), from.dtype);
  loop(integer(0), rows, 1, [&](Value row) {
    for_each_group(columns, [&](Value column, int64_t lanes) {
      const Value values = mlir::vector::LoadOp::create(builder(), location(), lanes_of(element, lanes), from.tensor,
                                                        place(from, row, column));
      store_lanes(to_fp32(values, from.dtype), address(to, row, column));
    });
  });
}

void Emitter::write_block(ScratchMatrix from, const RowFactor& factor, const TensorBlock& to, Value rows,
                          Value columns) {
  loop(integer(0), rows, 1, [&](Value row) {
    const Value times = factor(row);
    for_each_group(columns, [&](Value column, int64_t lanes) {
      mlir::vector::StoreOp::create(builder(), location(), rounded(address(from, row, column), lanes, times, to.dtype),
                                    to.tensor, place(to, row, column));
    });
  });
}

void Emitter::clear_block(const TensorBlock& to, Value rows, Value columns) {
  loop(integer(0), rows, 1, [&](Value row) {
    for_each_group(columns, [&](Value column, int64_t lanes) {
      const mlir::VectorType type = lanes_of(builder().getF32Type(), lanes);
      const Value zeros =
          mlir::arith::ConstantOp::create(builder(), location(), mlir::DenseElementsAttr::get(type, 0.0F));
      mlir::vector::StoreOp::create(builder(), location(), from_fp32(zeros, to.dtype), to.tensor,
                                    place(to, row, column));
    });
  });
}

Value Emitter::position_of(Value positions, int64_t lane) {
  if (!mlir::isa<mlir::VectorType>(positions.getType())) return positions;
  const Value position = mlir::vector::ExtractOp::create(builder(), location(), positions, lane);
  return mlir::arith::IndexCastOp::create(builder(), location(), builder().getIndexType(), position);
}

Value Emitter::gather(DataType dtype, Value positions, const std::function<Value(Value)>& load) {
  const auto lanes = mlir::dyn_cast<mlir::VectorType>(positions.getType());
  Values elements;
  for (int64_t lane = 0; lane < (lanes ? lanes.getNumElements() : 1); ++lane)
    elements.push_back(load(position_of(positions, lane)));
  const auto count = static_cast<int64_t>(elements.size());
  Value values = mlir::vector::FromElementsOp::create(builder(), location(),
                                                      lanes_of(storage_type(builder(), dtype), count), elements);
  if (dtype == DataType::kInt32) {
    values = mlir::arith::ExtSIOp::create(builder(), location(), lanes_of(builder().getI64Type(), count), values);
  } else if (dtype != DataType::kInt64) {
    values = to_fp32(values, dtype);
  }
  return lanes ? values : mlir::vector::ExtractOp::create(builder(), location(), values, 0).getResult();
}

Value Emitter::read_rows(Value tensor, DataType dtype, Value first, Value column, Value count, Value positions) {
  const Value zero =
      mlir::arith::ConstantOp::create(builder(), location(), builder().getZeroAttr(storage_type(builder(), dtype)));
  return gather(dtype, positions, [&](Value position) {
    const Value nearest = max(min(position, sub(count, integer(1))), integer(0));
    Values at = {add(first, nearest)};
    if (column) at.push_back(column);
    const Value loaded = mlir::memref::LoadOp::create(builder(), location(), tensor, at);
    return select(eq(position, nearest), loaded, zero);
  });
}

Value Emitter::read_entries(Value tensor, DataType dtype, Value column, Value count, Value positions) {
  return gather(dtype, positions, [&](Value position) -> Value {
    Values at = {max(min(position, sub(count, integer(1))), integer(0))};
    if (column) at.push_back(column);
    return mlir::memref::LoadOp::create(builder(), location(), tensor, at);
  });
}

Value Emitter::read_pairs(const TensorBlock& of, Value rows, Value columns, Value count) {
  const Value zero =
      mlir::arith::ConstantOp::create(builder(), location(), builder().getZeroAttr(storage_type(builder(), of.dtype)));
  const bool by_rows = mlir::isa<mlir::VectorType>(rows.getType());
  return gather(of.dtype, by_rows ? rows : columns, [&](Value position) {
    const Value row = by_rows ? position : rows, column = by_rows ? columns : position;
    const auto nearest = [&](Value place) { return max(min(place, sub(count, integer(1))), integer(0)); };
    Values at = of.outer;
    at.append({nearest(row), nearest(column)});
    const Value loaded = mlir::memref::LoadOp::create(builder(), location(), of.tensor, at);
    return select(both(eq(row, nearest(row)), eq(column, nearest(column))), loaded, zero);
  });
}

Value Emitter::read_intervals(Value tensor, Value head, int64_t number, Value first, Value count, Value positions) {
  const auto lanes = mlir::dyn_cast<mlir::VectorType>(positions.getType());
  Values elements;
  for (int64_t lane = 0; lane < (lanes ? lanes.getNumElements() : 1); ++lane) {
    const Value nearest = max(min(position_of(positions, lane), sub(count, integer(1))), integer(0));
    elements.push_back(mlir::memref::LoadOp::create(builder(), location(), tensor,
                                                    Values{head, integer(number), add(first, nearest)}));
  }
  if (!lanes) return narrowed(elements[0]);
  return mlir::vector::FromElementsOp::create(builder(), location(), lanes, elements);
}

void Emitter::scatter(Value lanes, Value address, Value positions) {
  for (int64_t lane = 0; lane < mlir::cast<mlir::VectorType>(lanes.getType()).getNumElements(); ++lane) {
    const Value at = add(address, position_of(positions, lane));
    store_scalar(addf(load_scalar(at), mlir::vector::ExtractOp::create(builder(), location(), lanes, lane)), at);
  }
}

Value Emitter::load_element(Value memref, Value index) {
  return mlir::memref::LoadOp::create(builder(), location(), memref, index);
}

void Emitter::store_element(Value scalar, Value memref, Value index) {
  mlir::memref::StoreOp::create(builder(), location(), scalar, memref, index);
}

Value Emitter::sum_lanes(Value lanes) {
  return mlir::vector::ReductionOp::create(builder(), location(), mlir::vector::CombiningKind::ADD, lanes);
}

Value Emitter::max_of_lanes(Value lanes) {
  return mlir::vector::ReductionOp::create(builder(), location(), mlir::vector::CombiningKind::MAXNUMF, lanes);
}

}  // namespace hstujit
