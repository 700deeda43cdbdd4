// `struct Epilogue`.
#include "compiler/emit/family_printer.h"
#include "compiler/emit/gemm_printer.h"
#include "compiler/ir/region_functions.h"

namespace hstujit {

Result<FamilyText> print_gemm_family(mlir::ModuleOp module, const OpSpec& spec, Direction /*direction*/,
                                     Activation /*activation*/) {
  FamilyText text;
  auto epilogue = module.lookupSymbol<mlir::func::FuncOp>(kEpilogue);
  if (!epilogue) return text;
  HSTUJIT_ASSIGN_OR_RETURN(text.body, print_epilogue(epilogue, static_cast<const GemmSpec&>(spec)));
  return text;
}

}  // namespace hstujit
