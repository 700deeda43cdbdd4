#include "compiler/ir/diagnostics.h"
#include "compiler/ir/hstu.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace hstujit {

namespace {

// Equal values become one before and after: patterns compare values, and rewriting makes new equal ones.
void add_simplification(mlir::PassManager& manager) {
  manager.addPass(mlir::createCSEPass());
  manager.addPass(create_simplify_pass());
  manager.addPass(mlir::createCSEPass());
}

void add_attention_passes(mlir::PassManager& manager) {
  manager.addPass(create_outline_regions_pass());
  add_simplification(manager);
  manager.addPass(create_lift_tile_pass());
  manager.addPass(create_derive_ranges_pass());
  manager.addPass(create_lift_bits_pass());
  manager.addPass(create_differentiate_pass());
  add_simplification(manager);
  add_simplification(manager);
}

void add_gemm_passes(mlir::PassManager& manager) {
  manager.addPass(create_outline_regions_pass());
  add_simplification(manager);
}

void add_row_passes(mlir::PassManager& manager, Direction direction) {
  if (direction == Direction::kBackward) manager.addPass(create_differentiate_rows_pass());
  add_simplification(manager);
  add_simplification(manager);
  manager.addPass(create_expand_centers_pass());
  manager.addPass(mlir::createCSEPass());
  manager.addPass(create_cut_rows_pass());
  add_simplification(manager);
  manager.addPass(create_chain_products_pass());
}

}  // namespace

Status run_passes(mlir::ModuleOp module, Direction direction) {
  if (module.getBody()->empty()) return {};
  const DiagnosticCollector diagnostics(*module.getContext());
  mlir::PassManager manager(module.getContext());
  manager.addPass(create_bind_flags_pass());
  if (!module.getOps<hstu::RowOp>().empty()) {
    add_row_passes(manager, direction);
  } else if (!module.getOps<hstu::GemmOp>().empty()) {
    add_gemm_passes(manager);
  } else {
    add_attention_passes(manager);
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
