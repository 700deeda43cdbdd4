// Text that the operators of a family add to a source beside regions and constants: the interface behind which a new
// family arrives.
//
// compiler/emit/families/<family>.cpp defines print_<family>_family, for every operator of it; CMake lists them by
// glob. A family without such a file has nothing of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/emit/region_printer.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/status.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

struct FamilyText {
  std::string members;  // of struct Spec
  std::string body;     // what the template calls by the name of a struct
};

struct FamilyPrinter {
  std::string_view family;
  // `module`: what the passes leave of the operator.
  Result<FamilyText> (*print)(mlir::ModuleOp module, const OpSpec& spec, Direction direction, Activation activation);
};
const std::vector<FamilyPrinter>& family_printers();

}  // namespace hstujit
