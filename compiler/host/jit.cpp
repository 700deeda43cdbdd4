#include "compiler/host/jit.h"

#include <fmt/format.h>

#include <string>

#include "compiler/host/lower_to_llvm.h"
#include "compiler/support/hash.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace hstujit {

namespace {

constexpr char kEntry[] = "hstujit_entry";

Status failure(llvm::Error error) {
  return Status(Code::kCompileFailed,
                fmt::format("code generation for the host failed: {}", llvm::toString(std::move(error))));
}

// Adds kEntry, which calls `function` with the values that a list of pointers leads to.
void add_entry(llvm::Module& module, llvm::Function& function) {
  llvm::IRBuilder<> builder(module.getContext());
  auto* const type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, /*isVarArg=*/false);
  auto* const entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntry, module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", entry));
  llvm::SmallVector<llvm::Value*> values;
  for (const llvm::Argument& argument : function.args()) {
    auto* const place = builder.CreateConstInBoundsGEP1_64(builder.getPtrTy(), entry->getArg(0), argument.getArgNo());
    values.push_back(builder.CreateLoad(argument.getType(), builder.CreateLoad(builder.getPtrTy(), place)));
  }
  builder.CreateCall(&function, values);
  builder.CreateRetVoid();
}

// Says which processor the module is for: LLVM's passes ask each function, not the target machine, which instructions
// it may use.
void set_target(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
}

// The digest of all that machine code depends on; the module has the processor in it.
std::string object_key(const llvm::Module& module) {
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  return KeyHasher("hstujit-host-object-1").add("llvm", LLVM_VERSION_STRING).add("module", bitcode).finish();
}

Result<std::string> generate(llvm::Module& module, llvm::TargetMachine& machine) {
  const auto optimise = mlir::makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0, &machine);
  if (llvm::Error error = optimise(&module)) return failure(std::move(error));
  auto object = llvm::orc::SimpleCompiler(machine)(module);
  if (!object) return failure(object.takeError());
  return (*object)->getBuffer().str();
}

Result<std::unique_ptr<llvm::orc::LLJIT>> load(const std::string& object) {
  auto jit = llvm::orc::LLJITBuilder().setPlatformSetUp(llvm::orc::setUpInactivePlatform).create();
  if (!jit) return failure(jit.takeError());
  if (llvm::Error error = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, kEntry)))
    return failure(std::move(error));
  return std::move(*jit);
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

Result<JitFunction> JitFunction::compile(mlir::ModuleOp module, llvm::StringRef name, HostTarget& target,
                                         const KeptFiles& objects) {
  HSTUJIT_RETURN_IF_ERROR(lower_to_llvm(module));
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> translated = mlir::translateModuleToLLVMIR(module, context);
  llvm::Function* const function = translated ? translated->getFunction(name) : nullptr;
  if (function == nullptr)
    return Status(Code::kCompileFailed, fmt::format("translating {} to LLVM IR failed", name.str()));
  add_entry(*translated, *function);
  set_target(*translated, target.machine());

  const std::string key = object_key(*translated);
  std::optional<std::string> object = objects.find(key);
  if (!object) {
    HSTUJIT_ASSIGN_OR_RETURN(object, generate(*translated, target.machine()));
    objects.keep(key, *object);
  }
  JitFunction compiled;
  HSTUJIT_ASSIGN_OR_RETURN(compiled.jit_, load(*object));
  auto entry = compiled.jit_->lookup(kEntry);
  if (!entry) return failure(entry.takeError());
  compiled.entry_ = entry->toPtr<Entry>();
  return compiled;
}

}  // namespace hstujit
