// Expressions as IR.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/expression/expression.h"
#include "compiler/ir/ops.h"

namespace hstujit {

// The values of these nodes: one operation for each node of the expression, in their order, integers of type index, and
// words of type i32. `value_of` gives the value of each symbol, and is called at each of its nodes.
std::vector<mlir::Value> build_expression(Ops& ops, const Expression& expression, std::span<const int> results,
                                          const std::function<mlir::Value(const Expression::Symbol&)>& value_of);

// The operation of a node of integers or booleans that is neither a symbol nor a call, or a choice of any.
mlir::Value build_node(Ops& ops, const Expression::Node& node, mlir::Value a, mlir::Value b, mlir::Value c);

}  // namespace hstujit
