#include "compiler/ir/diagnostics.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/family_passes.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace hstujit {

namespace {

// "row" for a module with hstu.row.
bool has_operator_of(mlir::ModuleOp module, std::string_view family) {
  const std::string name = "hstu." + std::string(family);
  return llvm::any_of(module.getBody()->getOperations(),
                      [&](mlir::Operation& operation) { return operation.getName().getStringRef() == name; });
}

}  // namespace

void add_simplification(mlir::PassManager& manager) {
  manager.addPass(mlir::createCSEPass());
  manager.addPass(create_simplify_pass());
  manager.addPass(mlir::createCSEPass());
}

Status run_passes(mlir::ModuleOp module, Direction direction) {
  if (module.getBody()->empty()) return {};
  const DiagnosticCollector diagnostics(*module.getContext());
  mlir::PassManager manager(module.getContext());
  const auto& families = family_passes();
  const auto family = llvm::find_if(families, [&](const FamilyPasses& f) { return has_operator_of(module, f.family); });
  if (family != families.end()) {
    family->add(manager, direction);
  } else {
    add_simplification(manager);  // of functions alone
  }
  return failed(manager.run(module)) ? diagnostics.error("a pass over the IR") : Status();
}

bool mask_is_trivial(mlir::ModuleOp module) {
  auto mask = module.lookupSymbol<mlir::func::FuncOp>(kMaskValid);
  if (!mask) return false;
  auto compare = mask.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mlir::arith::CmpIOp>();
  if (!compare) return false;
  const mlir::Value column = mask.getArgument(1), n = mask.getArgument(2);
  using Predicate = mlir::arith::CmpIPredicate;
  return (compare.getPredicate() == Predicate::slt && compare.getLhs() == column && compare.getRhs() == n) ||
         (compare.getPredicate() == Predicate::sgt && compare.getLhs() == n && compare.getRhs() == column);
}

}  // namespace hstujit
