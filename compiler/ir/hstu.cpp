#include "compiler/ir/hstu.h"

#include "compiler/ir/hstu_dialect.cpp.inc"
#include "compiler/ir/hstu_enums.cpp.inc"
#include "compiler/ir/row_patterns.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#define GET_ATTRDEF_CLASSES
#include "compiler/ir/hstu_attributes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/ir/hstu_ops.cpp.inc"

namespace hstujit::hstu {

void HstuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/ir/hstu_attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/ir/hstu_ops.cpp.inc"
      >();
}

namespace {

mlir::LogicalResult verify_region(mlir::Operation* op, mlir::Region& region, llvm::StringRef name,
                                  mlir::TypeRange arguments, mlir::TypeRange results) {
  mlir::Block& block = region.front();
  if (mlir::TypeRange(block.getArgumentTypes()) != arguments) {
    return op->emitOpError() << "region '" << name << "' must take (" << arguments << ") and takes ("
                             << block.getArgumentTypes() << ")";
  }
  auto yield = block.empty() ? YieldOp() : mlir::dyn_cast<YieldOp>(block.back());
  if (!yield) return op->emitOpError() << "region '" << name << "' must end in hstu.yield";
  if (mlir::TypeRange(yield.getValues().getTypes()) != results) {
    return op->emitOpError() << "region '" << name << "' must yield " << results << " and yields "
                             << yield.getValues().getTypes();
  }
  return mlir::success();
}

bool is_sum(OperandKind kind) {
  return kind == OperandKind::ColumnSum || kind == OperandKind::GroupSum || kind == OperandKind::TableSum;
}
bool is_output(OperandKind kind) { return kind == OperandKind::Row || is_sum(kind); }

}  // namespace

mlir::LogicalResult AttentionOp::verifyRegions() {
  mlir::Builder builder(getContext());
  const mlir::Type index = builder.getIndexType(), real = builder.getF32Type();
  mlir::SmallVector<mlir::Type> score(kFirstScalar + getScalars().size(), real);
  std::fill(score.begin() + 1, score.begin() + kFirstScalar, index);
  return verify_region(*this, getScoreRegion(), "score", score, {real});
}

mlir::LogicalResult RowOp::verifyRegions() {
  mlir::Builder builder(getContext());
  const mlir::Type real = builder.getF32Type();
  const mlir::Type elements = mlir::VectorType::get({static_cast<int64_t>(getWidth())}, real);
  if (getWidth() % getGroups().value_or(1) != 0)
    return emitOpError() << "has rows of " << getWidth() << " elements, which are no " << *getGroups() << " groups";
  mlir::SmallVector<mlir::Type> arguments, results;
  for (const OperandAttr input : getInputs().getAsRange<OperandAttr>()) {
    const OperandKind kind = input.getKind();
    if (is_sum(kind)) return emitOpError() << "input '" << input.getName() << "' is a sum over rows";
    arguments.push_back(kind == OperandKind::Scalar ? real
                        : kind == OperandKind::Seed ? mlir::Type(builder.getI64Type())
                                                    : elements);
  }
  for (const OperandAttr output : getOutputs().getAsRange<OperandAttr>()) {
    if (!is_output(output.getKind()))
      return emitOpError() << "output '" << output.getName() << "' is no row and no sum over rows";
    results.push_back(elements);
  }
  if (failed(verify_region(*this, getBody(), "body", arguments, results))) return mlir::failure();
  if (!getFound()) return mlir::success();
  if (!getIndex().hasOneBlock()) return emitOpError() << "finds rows and has no index of one block";
  const mlir::Type index = builder.getIndexType();
  const mlir::SmallVector<mlir::Type> found(getFound()->size(), index);
  return verify_region(*this, getIndex(), "index", {index, index}, found);
}

mlir::LogicalResult GemmOp::verifyRegions() {
  const mlir::Type real = mlir::Float32Type::get(getContext());
  mlir::SmallVector<mlir::Type> arguments(1 + getInputs().size(), real);
  if (getTakesColumn()) arguments.insert(arguments.begin() + 1, mlir::IndexType::get(getContext()));
  return verify_region(*this, getEpilogue(), "epilogue", arguments, {real});
}

void ReduceOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns, mlir::MLIRContext*) {
  add_reduce_patterns(patterns);
}
void SplatOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns, mlir::MLIRContext*) {
  add_splat_patterns(patterns);
}

}  // namespace hstujit::hstu
