// The epilogue: a function of an element.
#include "compiler/passes/family_passes.h"
#include "compiler/passes/passes.h"

namespace hstujit {

void add_gemm_passes(mlir::PassManager& manager, Direction /*direction*/) {
  manager.addPass(create_outline_regions_pass());
  add_simplification(manager);
}

}  // namespace hstujit
