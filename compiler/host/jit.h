// MLIR functions -> machine code of this process.
#pragma once

#include <memory>

#include "compiler/host/target.h"
#include "compiler/support/status.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace mlir {
class ExecutionEngine;
}

namespace hstujit {

// Loads what the host backend's IR uses, and the translation to LLVM, into a context.
void prepare_context(mlir::MLIRContext& context);

class JitFunction {
 public:
  // Takes one pointer to each argument's value; a memref is its aligned fields: two pointers, offset, sizes, strides.
  using Entry = void (*)(void** arguments);

  // Compiles `module` and looks up `name`. The module is lowered in place and may be destroyed afterwards.
  static Result<JitFunction> compile(mlir::ModuleOp module, llvm::StringRef name, HostTarget& target);

  JitFunction(JitFunction&& other) noexcept;
  JitFunction& operator=(JitFunction&& other) noexcept;
  ~JitFunction();

  void operator()(void** arguments) const { entry_(arguments); }

 private:
  JitFunction();

  std::unique_ptr<mlir::ExecutionEngine> engine_;
  Entry entry_ = nullptr;
};

}  // namespace hstujit
