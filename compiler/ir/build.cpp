#include "compiler/ir/build.h"

#include "compiler/ir/diagnostics.h"
#include "compiler/ir/hstu.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

namespace hstujit {

std::unique_ptr<mlir::MLIRContext> make_context() {
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  context
      ->loadDialect<hstu::HstuDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::func::FuncDialect>();
  return context;
}

Result<Module> build_module(mlir::MLIRContext& context, const OpSpec& spec) {
  for (const OperatorBuilder& builder : operator_builders()) {
    if (builder.op != spec.op()) continue;
    const DiagnosticCollector diagnostics(context);
    HSTUJIT_ASSIGN_OR_RETURN(Module module, builder.build(context, spec));
    if (failed(mlir::verify(*module))) return diagnostics.error("the IR that was built");
    return module;
  }
  return Module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
}

std::string to_text(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

}  // namespace hstujit
