// The passes over the IR of a family's operators: the interface behind which a new family arrives.
//
// compiler/passes/families/<family>.cpp defines add_<family>_passes; CMake lists them by glob. The operation of the
// dialect that such an operator is has the family's name: hstu.row.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/spec/types.h"
#include "mlir/Pass/PassManager.h"

namespace hstujit {

struct FamilyPasses {
  std::string_view family;
  void (*add)(mlir::PassManager& manager, Direction direction);  // in their order
};
const std::vector<FamilyPasses>& family_passes();

// Equal values become one before and after: patterns compare values, and rewriting makes new equal ones.
void add_simplification(mlir::PassManager& manager);

}  // namespace hstujit
