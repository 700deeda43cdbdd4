#include "compiler/host/target.h"

#include <mutex>

#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/TargetSelect.h"

namespace hstujit {

namespace {

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> make_machine() {
  initialize_once();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) {
    return Status(Code::kUnsupported,
                  "the host backend does not know this processor: " + llvm::toString(builder.takeError()));
  }
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  auto machine = builder->createTargetMachine();
  if (!machine) {
    return Status(Code::kUnsupported,
                  "the host backend has no code generator for this processor: " + llvm::toString(machine.takeError()));
  }
  return std::move(*machine);
}

// Accumulators, one row of the right operand and one broadcast value must fit in the register file.
RegisterTile choose_tile(const llvm::TargetMachine& machine) {
  const llvm::Triple& triple = machine.getTargetTriple();
  const llvm::MCSubtargetInfo& features = *machine.getMCSubtargetInfo();
  if (triple.isX86()) {
    if (features.checkFeatures("+avx512f")) return {.lanes = 16, .vectors = 2, .rows = 12};
    if (features.checkFeatures("+avx")) return {.lanes = 8, .vectors = 2, .rows = 6};
    return {.lanes = 4, .vectors = 2, .rows = 6};
  }
  if (triple.isAArch64()) return {.lanes = 4, .vectors = 2, .rows = 12};
  return {};
}

}  // namespace

Result<HostTarget> HostTarget::detect() {
  HostTarget target;
  HSTUJIT_ASSIGN_OR_RETURN(target.machine_, make_machine());
  target.tile_ = choose_tile(*target.machine_);
  return target;
}

}  // namespace hstujit
