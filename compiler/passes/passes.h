// The passes over the IR of one operator, and their order.
//
// Before: one hstu operator with its regions, and functions of a mask (compiler/ir/mask_functions.h). After: one
// func.func per region function of docs/generated-source.md (those of the mask, score, score_grad; those of
// row_functions.h). Backends print or lower these functions.
#pragma once

#include <memory>

#include "compiler/spec/types.h"
#include "compiler/support/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace hstujit {

// The operator's regions become functions: score, epilogue. The operator is gone afterwards.
std::unique_ptr<mlir::Pass> create_outline_regions_pass();
// Rewrites arith and math as a person would write them; runs the canonicalization patterns of the dialects too.
std::unique_ptr<mlir::Pass> create_simplify_pass();
// score and its derivative with respect to x: score_grad(x, ..., alpha) -> (y, dy).
std::unique_ptr<mlir::Pass> create_differentiate_pass();

// hstu.row becomes the hstu.row of its gradient.
std::unique_ptr<mlir::Pass> create_differentiate_rows_pass();
// hstu.center in hstu.row becomes sums and differences, with a corrected mean. Simplification would undo them: it takes
// sums apart. So the next pass but CSE is hstu-cut-rows.
std::unique_ptr<mlir::Pass> create_expand_centers_pass();
// hstu.row becomes the functions of row_functions.h. The operator is gone afterwards.
std::unique_ptr<mlir::Pass> create_cut_rows_pass();

// Sums of several terms, in an order in which every product is fused with an addition.
std::unique_ptr<mlir::Pass> create_chain_products_pass();

// Runs those of the family of the module's operator (family_passes.h). Functions without an operator are simplified.
Status run_passes(mlir::ModuleOp module, Direction direction = Direction::kForward);

// True when every pair of rows and columns below n is valid: only `column < n` is left of mask_valid.
bool mask_is_trivial(mlir::ModuleOp module);

}  // namespace hstujit
