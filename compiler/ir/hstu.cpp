#include "compiler/ir/hstu.h"

#include "compiler/ir/hstu_dialect.cpp.inc"
#include "mlir/IR/Builders.h"
#define GET_OP_CLASSES
#include "compiler/ir/hstu_ops.cpp.inc"

namespace hstujit::hstu {

void HstuDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/ir/hstu_ops.cpp.inc"
      >();
}

namespace {

mlir::LogicalResult verify_region(mlir::Operation* op, mlir::Region& region, llvm::StringRef name,
                                  mlir::TypeRange arguments, mlir::Type result) {
  mlir::Block& block = region.front();
  if (mlir::TypeRange(block.getArgumentTypes()) != arguments) {
    return op->emitOpError() << "region '" << name << "' must take (" << arguments << ") and takes ("
                             << block.getArgumentTypes() << ")";
  }
  auto yield = block.empty() ? YieldOp() : mlir::dyn_cast<YieldOp>(block.back());
  if (!yield) return op->emitOpError() << "region '" << name << "' must end in hstu.yield";
  if (yield.getValue().getType() != result) {
    return op->emitOpError() << "region '" << name << "' must yield " << result << " and yields "
                             << yield.getValue().getType();
  }
  return mlir::success();
}

}  // namespace

mlir::LogicalResult AttentionOp::verifyRegions() {
  mlir::Builder builder(getContext());
  const mlir::Type index = builder.getIndexType(), real = builder.getF32Type();
  if (failed(verify_region(*this, getMaskRegion(), "mask", {index, index, index, index}, builder.getI1Type())))
    return mlir::failure();
  return verify_region(*this, getScoreRegion(), "score", {real, real}, real);
}

}  // namespace hstujit::hstu
