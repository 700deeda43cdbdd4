// `struct Row`.
#include "compiler/emit/family_printer.h"
#include "compiler/emit/row_printer.h"

namespace hstujit {

Result<FamilyText> print_row_family(mlir::ModuleOp module, const OpSpec& spec, Direction direction,
                                    Activation activation) {
  FamilyText text;
  const RowFunctions functions = find_row_functions(module);
  if (!functions.outputs) return text;
  const RowInterface interface = static_cast<const RowSpec&>(spec).interface(direction);
  HSTUJIT_ASSIGN_OR_RETURN(text.body, print_row(functions, interface, activation));
  return text;
}

}  // namespace hstujit
