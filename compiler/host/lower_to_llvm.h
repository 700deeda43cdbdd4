// The host backend's IR (scf, vector, memref, arith, math, func) -> the LLVM dialect.
#pragma once

#include "compiler/support/status.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

// Transcendental functions become polynomials over lanes, which a call of libm per element could not match; what has no
// polynomial becomes such a call.
Status lower_to_llvm(mlir::ModuleOp module);

}  // namespace hstujit
