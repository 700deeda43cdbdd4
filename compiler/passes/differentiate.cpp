// score -> score_grad and score_slope_*: forward-mode differentiation with respect to x, and to elements of operands.
#include <array>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/differentiator.h"
#include "compiler/passes/passes.h"
#include "llvm/ADT/MapVector.h"

namespace hstujit {

namespace {

using Seeds = llvm::SmallVector<mlir::Value>;

// A function over the score's arguments that returns the score, if asked for, and its derivative with respect to the
// seeds. Fails where an operation has none.
mlir::LogicalResult differentiate(mlir::func::FuncOp score, llvm::StringRef name, const Seeds& seeds, bool with_score) {
  mlir::OpBuilder builder(score);
  builder.setInsertionPointToEnd(score->getBlock());
  const mlir::Type real = builder.getF32Type();
  const llvm::SmallVector<mlir::Type> types(with_score ? 2 : 1, real);
  const llvm::SmallVector<llvm::StringRef> names = {"y", "dy"};
  auto function =
      create_region_function(builder, score.getLoc(), name, builder.getFunctionType(score.getArgumentTypes(), types),
                             {}, llvm::ArrayRef(names).take_back(types.size()));
  // None where nobody has named them.
  if (const mlir::ArrayAttr arguments = score.getAllArgAttrs()) function.setAllArgAttrs(arguments);
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Ops ops(builder, score.getLoc());
  mlir::Block& source = score.getBody().front();
  Differentiator differentiator(ops, source, *body);
  for (const mlir::Value seed : seeds) differentiator.seed(seed, {Derivative::Kind::kOne, {}});
  for (mlir::Operation& operation : source.without_terminator()) {
    if (!differentiator.visit(operation)) return operation.emitError() << "has no derivative";
  }
  const mlir::Value y = source.getTerminator()->getOperand(0);
  llvm::SmallVector<mlir::Value> results;
  if (with_score) results.push_back(differentiator.value(y));
  results.push_back(differentiator.derivative(y));
  mlir::func::ReturnOp::create(builder, score.getLoc(), results);
  return mlir::success();
}

struct Differentiate : mlir::PassWrapper<Differentiate, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Differentiate)
  llvm::StringRef getArgument() const final { return "hstu-differentiate"; }
  llvm::StringRef getDescription() const final { return "derive score_grad and score_slope_* from score"; }

  void runOnOperation() override {
    auto score = getOperation().lookupSymbol<mlir::func::FuncOp>(kScore);
    if (!score) return;
    if (failed(differentiate(score, kScoreGrad, {score.getArgument(0)}, true))) return signalPassFailure();
    // Values read of each operand at the pair's row, and at its column.
    llvm::MapVector<llvm::StringRef, std::array<Seeds, 2>> reads;
    const mlir::Value row = score.getArgument(1), column = score.getArgument(2);
    for (hstu::ReadOp read : score.getOps<hstu::ReadOp>()) {
      if (!read.getDifferentiable()) continue;
      if (read.getPosition() != row && read.getPosition() != column) {
        read.emitError() << "reads " << read.getOperand() << ", whose gradient is asked for, at a position that is "
                         << "neither the row nor the column of the pair";
        return signalPassFailure();
      }
      reads[read.getOperand()][read.getPosition() == column ? 1 : 0].push_back(read.getValue());
    }
    for (const auto& [operand, places] : reads) {
      for (const bool of_column : {false, true}) {
        const Seeds& seeds = places[of_column ? 1 : 0];
        if (seeds.empty()) continue;
        if (failed(differentiate(score, score_slope(operand, of_column), seeds, false))) return signalPassFailure();
      }
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_differentiate_pass() { return std::make_unique<Differentiate>(); }

}  // namespace hstujit
