#include "compiler/ir/expression.h"

#include "compiler/ir/hstu.h"

namespace hstujit {

namespace {

mlir::Value word(Ops& ops, int64_t bits) {
  return mlir::arith::ConstantOp::create(ops.builder(), ops.location(), ops.builder().getI32IntegerAttr(bits));
}

}  // namespace

mlir::Value build_node(Ops& ops, const Expression::Node& node, mlir::Value a, mlir::Value b, mlir::Value c) {
  switch (node.op) {
    case Operator::kConstant:
      return node.boolean ? ops.truth(node.value != 0) : ops.integer(node.value);
    case Operator::kSymbol:
    case Operator::kCall:
    case Operator::kRead:
      break;
    case Operator::kAdd:
      return ops.add(a, b);
    case Operator::kSub:
      return ops.sub(a, b);
    case Operator::kMul:
      return ops.mul(a, b);
    case Operator::kDiv:
      return ops.div(a, b);
    case Operator::kFloorDiv:
      return ops.floor_div(a, b);
    case Operator::kMod:
      return ops.sub(a, ops.mul(ops.floor_div(a, b), b));
    case Operator::kMax:
      return ops.max(a, b);
    case Operator::kMin:
      return ops.min(a, b);
    case Operator::kAbs:
      return ops.abs(a);
    case Operator::kWord:
      return word(ops, static_cast<int32_t>(node.value));
    case Operator::kBitsFrom:
      return hstu::BitsFromOp::create(ops.builder(), ops.location(), a);
    case Operator::kBitAnd:
      return ops.both(a, b);
    case Operator::kBitOr:
      return ops.either(a, b);
    case Operator::kBitNot:
      return mlir::arith::XOrIOp::create(ops.builder(), ops.location(), a, word(ops, -1));
    case Operator::kEq:
      return ops.eq(a, b);
    case Operator::kNe:
      return ops.ne(a, b);
    case Operator::kLt:
      return ops.lt(a, b);
    case Operator::kLe:
      return ops.le(a, b);
    case Operator::kGt:
      return ops.gt(a, b);
    case Operator::kGe:
      return ops.ge(a, b);
    case Operator::kAnd:
      return ops.both(a, b);
    case Operator::kOr:
      return ops.either(a, b);
    case Operator::kNot:
      return ops.negate(a);
    case Operator::kSelect:
      return ops.select(a, b, c);
  }
  return {};
}

std::vector<mlir::Value> build_expression(Ops& ops, const Expression& expression, std::span<const int> results,
                                          const std::function<mlir::Value(const Expression::Symbol&)>& value_of) {
  std::vector<mlir::Value> values;
  for (const Expression::Node& node : expression.nodes()) {
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? mlir::Value() : values[static_cast<size_t>(node.operands[i])];
    };
    values.push_back(node.op == Operator::kSymbol ? value_of(expression.symbols()[static_cast<size_t>(node.value)])
                                                  : build_node(ops, node, operand(0), operand(1), operand(2)));
  }
  std::vector<mlir::Value> found;
  for (const int result : results) found.push_back(values[static_cast<size_t>(result)]);
  return found;
}

}  // namespace hstujit
