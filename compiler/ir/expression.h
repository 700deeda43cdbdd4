// Expressions of compiler/spec as IR.
#pragma once

#include <functional>

#include "compiler/expression/expression.h"
#include "compiler/ir/ops.h"

namespace hstujit {

// One operation for each node, in their order, integers of type index. `value_of` gives the value of each symbol, and
// is called at each of its nodes.
mlir::Value build_expression(Ops& ops, const Expression& expression,
                             const std::function<mlir::Value(const Expression::Symbol&)>& value_of);

// The operation of a node of integers or booleans that is neither a symbol nor a call, or a choice of any.
mlir::Value build_node(Ops& ops, const Expression::Node& node, mlir::Value a, mlir::Value b, mlir::Value c);

}  // namespace hstujit
