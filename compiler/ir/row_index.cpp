#include "compiler/ir/row_index.h"

#include "compiler/ir/hstu.h"

namespace hstujit {

namespace {

llvm::StringRef text(std::string_view name) { return {name.data(), name.size()}; }

}  // namespace

RowIndex::RowIndex(mlir::MLIRContext& context, mlir::Block& block)
    : block_(block), builder_(&context), ops_(builder_, builder_.getUnknownLoc()) {
  builder_.setInsertionPointToEnd(&block_);
}

mlir::Value RowIndex::element(std::string_view tensor, Value index) {
  return hstu::ElementOp::create(builder_, ops_.location(), builder_.getIndexType(), text(tensor), index);
}

mlir::Value RowIndex::extent(std::string_view operand) {
  return hstu::ExtentOp::create(builder_, ops_.location(), builder_.getIndexType(), text(operand));
}

mlir::Value RowIndex::integer(std::string_view argument) {
  return hstu::ArgumentOp::create(builder_, ops_.location(), builder_.getIndexType(), text(argument));
}

mlir::Value RowIndex::real(std::string_view argument) {
  return hstu::ArgumentOp::create(builder_, ops_.location(), builder_.getF32Type(), text(argument));
}

mlir::Value RowIndex::first_row(const Dimension& axis) {
  if (axis.is_uniform()) return ops_.mul(sequence(), integer(axis.integer));
  return element(axis.offsets, sequence());
}

mlir::Value RowIndex::rows(const Dimension& axis) {
  if (axis.is_uniform()) return integer(axis.integer);
  return ops_.sub(element(axis.offsets, ops_.add(sequence(), ops_.integer(1))), first_row(axis));
}

mlir::Value RowIndex::row_at(const Dimension& axis, Value position, Value condition) {
  return ops_.select(condition, ops_.add(first_row(axis), position), none());
}

mlir::Value RowIndex::clamped(Value row, std::string_view operand) {
  const Value last = ops_.sub(extent(operand), ops_.integer(1));
  return ops_.max(ops_.min(row, last), ops_.integer(0));
}

}  // namespace hstujit
