// score -> score_grad: forward-mode differentiation with respect to x.
#include "compiler/passes/differentiator.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"

namespace hstujit {

namespace {

struct Differentiate : mlir::PassWrapper<Differentiate, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Differentiate)
  llvm::StringRef getArgument() const final { return "hstu-differentiate"; }
  llvm::StringRef getDescription() const final { return "derive score_grad from score"; }

  void runOnOperation() override {
    auto score = getOperation().lookupSymbol<mlir::func::FuncOp>(kScore);
    if (!score) return;
    mlir::OpBuilder builder(score);
    builder.setInsertionPointToEnd(getOperation().getBody());
    const mlir::Type real = builder.getF32Type();
    auto function =
        create_region_function(builder, score.getLoc(), kScoreGrad,
                               builder.getFunctionType(score.getArgumentTypes(), {real, real}), {}, {"y", "dy"});
    // None where nobody has named them.
    if (const mlir::ArrayAttr names = score.getAllArgAttrs()) function.setAllArgAttrs(names);
    mlir::Block* body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    Ops ops(builder, score.getLoc());
    mlir::Block& source = score.getBody().front();
    Differentiator differentiator(ops, source, *body);
    differentiator.seed(source.getArgument(0), {Derivative::Kind::kOne, {}});
    for (mlir::Operation& operation : source.without_terminator()) {
      if (differentiator.visit(operation)) continue;
      operation.emitError() << "has no derivative";
      return signalPassFailure();
    }
    const mlir::Value y = source.getTerminator()->getOperand(0);
    mlir::func::ReturnOp::create(builder, score.getLoc(),
                                 mlir::ValueRange{differentiator.value(y), differentiator.derivative(y)});
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_differentiate_pass() { return std::make_unique<Differentiate>(); }

}  // namespace hstujit
