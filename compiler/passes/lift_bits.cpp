// mask_valid for 32 pairs at once: mask_row_bits and mask_column_bits. A thread asks for its pairs of a tile by a few
// words, which cost less than as many comparisons as there are pairs.
#include "compiler/passes/bits.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"

namespace hstujit {

namespace {

struct LiftBits : mlir::PassWrapper<LiftBits, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LiftBits)
  llvm::StringRef getArgument() const final { return "hstu-lift-bits"; }
  llvm::StringRef getDescription() const final { return "derive mask_row_bits and mask_column_bits from mask_valid"; }

  // `unknown` is the coordinate of mask_valid that differs from bit to bit, 0 or 1. No function where an operation of
  // the mask has no rule: templates that do not ask for it do without.
  void derive(mlir::func::FuncOp mask, llvm::StringRef name, unsigned unknown, llvm::StringRef known,
              llvm::StringRef first) {
    mlir::OpBuilder builder(mask);
    builder.setInsertionPointToEnd(getOperation().getBody());
    const mlir::Type index = builder.getIndexType();
    auto function = create_region_function(
        builder, mask.getLoc(), name, builder.getFunctionType({index, index, index, index}, {builder.getI32Type()}),
        {known, first, "n", "t"}, {"bits"});
    mlir::Block* body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    Ops ops(builder, mask.getLoc());
    Intervals points(ops);
    const auto set = [&](unsigned of_mask, unsigned own) {
      points.set(mask.getArgument(of_mask), {body->getArgument(own), body->getArgument(own)});
    };
    set(1 - unknown, 0);
    set(2, 2);
    set(3, 3);
    Bits bits(ops, points, mask.getArgument(unknown), body->getArgument(1));
    const auto word = bits.of(mask.getBody().front().getTerminator()->getOperand(0));
    if (!word) return function.erase();
    mlir::func::ReturnOp::create(builder, mask.getLoc(), *word);
  }

  void runOnOperation() override {
    auto mask = getOperation().lookupSymbol<mlir::func::FuncOp>(kMaskValid);
    if (!mask) return;
    derive(mask, kMaskRowBits, 1, "row", "c0");
    derive(mask, kMaskColumnBits, 0, "col", "r0");
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_lift_bits_pass() { return std::make_unique<LiftBits>(); }

}  // namespace hstujit
