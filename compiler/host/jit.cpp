#include "compiler/host/jit.h"

#include <fmt/format.h>

#include "compiler/host/lower_to_llvm.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

namespace hstujit {

namespace {

Status failure(std::string_view step, llvm::Error error) {
  return Status(Code::kCompileFailed, fmt::format("{} failed: {}", step, llvm::toString(std::move(error))));
}

// LLVM's passes ask each function, not the target machine, which instructions it may use.
void set_target_attributes(llvm::Module& module, const llvm::TargetMachine& machine) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
}

}  // namespace

void prepare_context(mlir::MLIRContext& context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<mlir::scf::SCFDialect, mlir::memref::MemRefDialect, mlir::vector::VectorDialect,
                      mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect>();
}

JitFunction::JitFunction() = default;
JitFunction::JitFunction(JitFunction&& other) noexcept = default;
JitFunction& JitFunction::operator=(JitFunction&& other) noexcept = default;
JitFunction::~JitFunction() = default;

Result<JitFunction> JitFunction::compile(mlir::ModuleOp module, llvm::StringRef name, HostTarget& target) {
  HSTUJIT_RETURN_IF_ERROR(lower_to_llvm(module));
  const auto optimise = mlir::makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0, &target.machine());
  // Named: the options only refer to it.
  const auto transform = [&](llvm::Module* llvm_module) {
    set_target_attributes(*llvm_module, target.machine());
    return optimise(llvm_module);
  };
  mlir::ExecutionEngineOptions options;
  options.transformer = transform;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Aggressive;
  // Both listeners are global to the process and would tell a debugger or perf of code that it did not ask for.
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  HSTUJIT_ASSIGN_OR_RETURN(auto machine, target.new_machine());
  auto engine = mlir::ExecutionEngine::create(module, options, std::move(machine));
  if (!engine) return failure("code generation for the host", engine.takeError());
  JitFunction function;
  function.engine_ = std::move(*engine);
  auto entry = function.engine_->lookupPacked(name);
  if (!entry) return failure("code generation for the host", entry.takeError());
  function.entry_ = *entry;
  return function;
}

}  // namespace hstujit
