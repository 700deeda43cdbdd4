// Functions of masks, and scores with their derivatives.
#include "compiler/passes/family_passes.h"
#include "compiler/passes/passes.h"

namespace hstujit {

// The functions are the same for both directions.
void add_attention_passes(mlir::PassManager& manager, Direction /*direction*/) {
  manager.addPass(create_outline_regions_pass());
  add_simplification(manager);
  manager.addPass(create_differentiate_pass());
  add_simplification(manager);
  add_simplification(manager);
}

}  // namespace hstujit
