// Pointwise score functions by name, as IR.
#pragma once

#include <string_view>

#include "compiler/ir/ops.h"

namespace hstujit {

// The value of score `name` at alpha * x; null when there is no such score.
mlir::Value build_score(Ops& ops, std::string_view name, mlir::Value x, mlir::Value alpha);

}  // namespace hstujit
