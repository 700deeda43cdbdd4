#include "compiler/host/lower_to_llvm.h"

#include "compiler/ir/diagnostics.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace hstujit {

namespace {

struct ExpandMath : mlir::PassWrapper<ExpandMath, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  llvm::StringRef getArgument() const final { return "hstu-host-expand-math"; }
  llvm::StringRef getDescription() const final { return "replace transcendental functions and rounding divisions"; }

  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    mlir::populateMathPolynomialApproximationPatterns(patterns);
    mlir::arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

struct ConvertToLlvm : mlir::PassWrapper<ConvertToLlvm, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertToLlvm)
  llvm::StringRef getArgument() const final { return "hstu-host-to-llvm"; }
  llvm::StringRef getDescription() const final { return "convert every dialect of the host backend to LLVM"; }
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    registry.insert<mlir::LLVM::LLVMDialect>();
  }

  void runOnOperation() override {
    mlir::LLVMConversionTarget target(getContext());
    target.addLegalOp<mlir::ModuleOp>();
    mlir::LLVMTypeConverter types(&getContext());
    mlir::RewritePatternSet patterns(&getContext());
    mlir::populateSCFToControlFlowConversionPatterns(patterns);
    mlir::cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    mlir::arith::populateArithToLLVMConversionPatterns(types, patterns);
    // Before libm, which has a function for fma and its like too.
    mlir::populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1P=*/true, /*benefit=*/2);
    mlir::populateMathToLibmConversionPatterns(patterns);
    mlir::populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    mlir::populateVectorToLLVMConversionPatterns(types, patterns);
    mlir::populateFuncToLLVMConversionPatterns(types, patterns);
    if (failed(mlir::applyFullConversion(getOperation(), target, std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace

Status lower_to_llvm(mlir::ModuleOp module) {
  const DiagnosticCollector diagnostics(*module.getContext());
  mlir::PassManager passes(module.getContext(), mlir::ModuleOp::getOperationName());
  passes.addPass(std::make_unique<ExpandMath>());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::createLoopInvariantCodeMotionPass());
  passes.addPass(std::make_unique<ConvertToLlvm>());
  if (failed(passes.run(module))) return diagnostics.error("lowering the operator to LLVM");
  return Status();
}

}  // namespace hstujit
