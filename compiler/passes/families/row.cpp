// The formula of a row, or of its gradient, cut into functions of an element.
#include "compiler/passes/family_passes.h"
#include "compiler/passes/passes.h"
#include "mlir/Transforms/Passes.h"

namespace hstujit {

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

}  // namespace hstujit
