// Region functions inside the loops of the host backend: as they are, and over lanes.
#pragma once

#include <functional>

#include "compiler/host/emitter.h"
#include "compiler/ir/hstu.h"
#include "compiler/support/status.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

// The function of that name that compiler/passes leaves; it is one block without side effects.
Result<mlir::func::FuncOp> find_region_function(mlir::ModuleOp module, llvm::StringRef name);

// The results of `function` for `arguments`, computed in place. Where an argument is lanes, so is everything that
// follows from it; the rest stays scalar.
//
// `read` emits an hstu.read at a position, an index or lanes of i32; regions without one need none.
using ReadEmitter = std::function<mlir::Value(hstu::ReadOp read, mlir::Value position)>;
Result<Emitter::Values> emit_region(Emitter& emit, mlir::func::FuncOp function, const Emitter::Values& arguments,
                                    const ReadEmitter& read = {});

}  // namespace hstujit
