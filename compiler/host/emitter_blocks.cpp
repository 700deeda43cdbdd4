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

Value Emitter::load_element(Value memref, Value index) {
  return mlir::memref::LoadOp::create(builder(), location(), memref, index);
}

void Emitter::store_element(Value scalar, Value memref, Value index) {
  mlir::memref::StoreOp::create(builder(), location(), scalar, memref, index);
}

Value Emitter::sum_lanes(Value lanes) {
  return mlir::vector::ReductionOp::create(builder(), location(), mlir::vector::CombiningKind::ADD, lanes);
}

}  // namespace hstujit
