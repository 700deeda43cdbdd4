// mask_valid solved for the column (mask_columns) and for the row (mask_rows).
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"
#include "compiler/passes/spans.h"

namespace hstujit {

namespace {

struct DeriveRanges : mlir::PassWrapper<DeriveRanges, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DeriveRanges)
  llvm::StringRef getArgument() const final { return "hstu-derive-ranges"; }
  llvm::StringRef getDescription() const final { return "derive mask_columns and mask_rows from mask_valid"; }

  // `unknown` is the coordinate of mask_valid to solve for, 0 or 1; the other one lies in [first, last].
  mlir::LogicalResult derive(mlir::func::FuncOp mask, llvm::StringRef name, unsigned unknown, llvm::StringRef first,
                             llvm::StringRef last) {
    mlir::OpBuilder builder(mask);
    builder.setInsertionPointToEnd(getOperation().getBody());
    const mlir::Type index = builder.getIndexType();
    auto function = create_region_function(builder, mask.getLoc(), name,
                                           builder.getFunctionType({index, index, index, index}, {index, index}),
                                           {first, last, "n", "t"}, {"lo", "hi"});
    mlir::Block* body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    Ops ops(builder, mask.getLoc());
    Intervals intervals(ops);
    const mlir::Value size = body->getArgument(2), targets = body->getArgument(3);
    intervals.set(mask.getArgument(1 - unknown), {body->getArgument(0), body->getArgument(1)});
    intervals.set(mask.getArgument(2), {size, size});
    intervals.set(mask.getArgument(3), {targets, targets});
    Spans spans(ops, intervals, mask.getArgument(unknown), size);
    const auto span = spans.where(mask.getBody().front().getTerminator()->getOperand(0));
    if (!span) return mlir::failure();
    const auto [lo, hi] = spans.ends(*span);
    mlir::func::ReturnOp::create(builder, mask.getLoc(), mlir::ValueRange{lo, hi});
    return mlir::success();
  }

  void runOnOperation() override {
    auto mask = getOperation().lookupSymbol<mlir::func::FuncOp>(kMaskValid);
    if (!mask) return;
    if (failed(derive(mask, kMaskColumns, 1, "r0", "r1")) || failed(derive(mask, kMaskRows, 0, "c0", "c1")))
      signalPassFailure();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_derive_ranges_pass() { return std::make_unique<DeriveRanges>(); }

}  // namespace hstujit
