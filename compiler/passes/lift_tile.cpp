// mask_valid over a rectangle of pairs: mask_tile. Lengths are known on the device only, so the mask itself is lifted
// to intervals and evaluated there, once a tile.
#include "compiler/passes/intervals.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"

namespace hstujit {

namespace {

struct LiftTile : mlir::PassWrapper<LiftTile, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LiftTile)
  llvm::StringRef getArgument() const final { return "hstu-lift-tile"; }
  llvm::StringRef getDescription() const final { return "derive mask_tile from mask_valid"; }

  void runOnOperation() override {
    auto mask = getOperation().lookupSymbol<mlir::func::FuncOp>(kMaskValid);
    if (!mask) return;
    mlir::OpBuilder builder(mask);
    builder.setInsertionPointAfter(mask);
    const mlir::Type index = builder.getIndexType(), truth = builder.getI1Type();
    auto tile = create_region_function(builder, mask.getLoc(), kMaskTile,
                                       builder.getFunctionType(mlir::SmallVector<mlir::Type>(6, index), {truth, truth}),
                                       {"r0", "r1", "c0", "c1", "n", "t"}, {"full", "visible"});
    mlir::Block* body = tile.addEntryBlock();
    builder.setInsertionPointToStart(body);
    Ops ops(builder, mask.getLoc());
    Intervals intervals(ops);
    const auto argument = [&](unsigned i) -> mlir::Value { return body->getArgument(i); };
    intervals.set(mask.getArgument(0), {argument(0), argument(1)});
    intervals.set(mask.getArgument(1), {argument(2), argument(3)});
    intervals.set(mask.getArgument(2), {argument(4), argument(4)});
    intervals.set(mask.getArgument(3), {argument(5), argument(5)});
    const auto result = intervals.of(mask.getBody().front().getTerminator()->getOperand(0));
    if (!result) return signalPassFailure();
    mlir::func::ReturnOp::create(builder, mask.getLoc(), mlir::ValueRange{result->lo, result->hi});
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_lift_tile_pass() { return std::make_unique<LiftTile>(); }

}  // namespace hstujit
