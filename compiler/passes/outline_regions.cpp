// hstu.attention -> func.func @score; hstu.gemm -> func.func @epilogue.
#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"

namespace hstujit {

namespace {

void outline(mlir::OpBuilder& builder, mlir::Region& region, llvm::StringRef name,
             llvm::ArrayRef<llvm::StringRef> arguments, llvm::StringRef result) {
  auto yield = mlir::cast<hstu::YieldOp>(region.front().getTerminator());
  const auto type = builder.getFunctionType(region.front().getArgumentTypes(), yield.getValues().getTypes());
  auto function = create_region_function(builder, region.getLoc(), name, type, arguments, {result});
  function.getBody().takeBody(region);
  mlir::OpBuilder at_end(yield);
  mlir::func::ReturnOp::create(at_end, yield.getLoc(), yield.getValues());
  yield.erase();
}

struct OutlineRegions : mlir::PassWrapper<OutlineRegions, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OutlineRegions)
  llvm::StringRef getArgument() const final { return "hstu-outline-regions"; }
  llvm::StringRef getDescription() const final { return "turn the regions of an operator into functions"; }
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    registry.insert<mlir::func::FuncDialect>();
  }

  void runOnOperation() override {
    for (auto attention : llvm::make_early_inc_range(getOperation().getOps<hstu::AttentionOp>())) {
      mlir::OpBuilder builder(attention);
      llvm::SmallVector<llvm::StringRef> score = {"x", "row", "col", "n", "t", "head"};
      llvm::append_range(score, attention.getScalars().getAsValueRange<mlir::StringAttr>());
      outline(builder, attention.getScoreRegion(), kScore, score, "y");
      attention.erase();
    }
    for (auto gemm : llvm::make_early_inc_range(getOperation().getOps<hstu::GemmOp>())) {
      mlir::OpBuilder builder(gemm);
      llvm::SmallVector<llvm::StringRef> arguments = {"sum"};
      if (gemm.getTakesColumn()) arguments.push_back("column");
      llvm::append_range(arguments, gemm.getInputs().getAsValueRange<mlir::StringAttr>());
      outline(builder, gemm.getEpilogue(), kEpilogue, arguments, "y");
      gemm.erase();
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_outline_regions_pass() { return std::make_unique<OutlineRegions>(); }

}  // namespace hstujit
