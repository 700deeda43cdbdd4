// MLIR functions -> machine code of this process.
#pragma once

#include <memory>

#include "compiler/host/target.h"
#include "compiler/support/kept_files.h"
#include "compiler/support/status.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace llvm::orc {
class LLJIT;
}

namespace hstujit {

// Loads what the host backend's IR uses, and the translation to LLVM, into a context.
void prepare_context(mlir::MLIRContext& context);

class JitFunction {
 public:
  // Takes one pointer to each argument's value; a memref is its aligned fields: two pointers, offset, sizes, strides.
  using Entry = void (*)(void** arguments);

  // Compiles `module` and looks up `name`. The module is lowered in place and may be destroyed afterwards. LLVM's
  // passes and code generation, nine tenths of the time, run only where `objects` has no machine code of the same LLVM
  // IR, of the same LLVM and for the same processor.
  static Result<JitFunction> compile(mlir::ModuleOp module, llvm::StringRef name, HostTarget& target,
                                     const KeptFiles& objects);

  JitFunction(JitFunction&& other) noexcept;
  JitFunction& operator=(JitFunction&& other) noexcept;
  ~JitFunction();

  void operator()(void** arguments) const { entry_(arguments); }

 private:
  JitFunction();

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Entry entry_ = nullptr;
};

}  // namespace hstujit
