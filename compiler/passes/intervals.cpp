#include "compiler/passes/intervals.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace arith = mlir::arith;
namespace math = mlir::math;
using Predicate = arith::CmpIPredicate;

std::optional<int64_t> constant_index(mlir::Value value) {
  llvm::APInt constant;
  if (!mlir::matchPattern(value, mlir::m_ConstantInt(&constant))) return std::nullopt;
  return constant.getSExtValue();
}

std::optional<ValueInterval> Intervals::of(mlir::Value value) {
  if (const auto it = known_.find(value); it != known_.end()) return it->second;
  mlir::Operation* operation = value.getDefiningOp();
  if (!operation) {
    mlir::emitError(value.getLoc()) << "an argument has no interval";
    return std::nullopt;
  }
  const std::optional<ValueInterval> interval = compute(*operation);
  if (interval) known_[value] = *interval;
  return interval;
}

std::optional<ValueInterval> Intervals::compute(mlir::Operation& operation) {
  mlir::SmallVector<ValueInterval> operands;
  bool points = true;
  for (const mlir::Value operand : operation.getOperands()) {
    const std::optional<ValueInterval> interval = of(operand);
    if (!interval) return std::nullopt;
    operands.push_back(*interval);
    points = points && interval->is_point();
  }
  if (points) {
    mlir::IRMapping mapping;
    for (const auto [operand, interval] : llvm::zip(operation.getOperands(), operands))
      mapping.map(operand, interval.lo);
    const mlir::Value copy = ops_.builder().clone(operation, mapping)->getResult(0);
    return ValueInterval{copy, copy};
  }
  const std::optional<ValueInterval> interval =
      operation.getResult(0).getType().isInteger(1) ? of_bool(operation, operands) : of_index(operation, operands);
  if (!interval) operation.emitError() << "has no rule for intervals";
  return interval;
}

std::optional<ValueInterval> Intervals::of_bool(mlir::Operation& operation, llvm::ArrayRef<ValueInterval> operands) {
  return llvm::TypeSwitch<mlir::Operation*, std::optional<ValueInterval>>(&operation)
      .Case([&](arith::CmpIOp op) -> std::optional<ValueInterval> {
        if (op.getLhs().getType().isInteger(1)) return std::nullopt;
        return compare(op.getPredicate(), operands[0], operands[1]);
      })
      .Case([&](arith::AndIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.both(operands[0].lo, operands[1].lo), ops_.both(operands[0].hi, operands[1].hi)};
      })
      .Case([&](arith::OrIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.either(operands[0].lo, operands[1].lo), ops_.either(operands[0].hi, operands[1].hi)};
      })
      .Case([&](arith::XOrIOp) -> std::optional<ValueInterval> {
        const ValueInterval a = operands[0], b = operands[1];
        const ValueInterval not_a{ops_.negate(a.hi), ops_.negate(a.lo)}, not_b{ops_.negate(b.hi), ops_.negate(b.lo)};
        return ValueInterval{ops_.either(ops_.both(a.lo, not_b.lo), ops_.both(not_a.lo, b.lo)),
                             ops_.either(ops_.both(a.hi, not_b.hi), ops_.both(not_a.hi, b.hi))};
      })
      .Case([&](arith::SelectOp) -> std::optional<ValueInterval> {
        return select(operands[0], operands[1], operands[2]);
      })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

std::optional<ValueInterval> Intervals::of_index(mlir::Operation& operation, llvm::ArrayRef<ValueInterval> operands) {
  const auto positive_divisor = [&] { return constant_index(operation.getOperand(1)).value_or(0) > 0; };
  return llvm::TypeSwitch<mlir::Operation*, std::optional<ValueInterval>>(&operation)
      .Case([&](arith::AddIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.add(operands[0].lo, operands[1].lo), ops_.add(operands[0].hi, operands[1].hi)};
      })
      .Case([&](arith::SubIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.sub(operands[0].lo, operands[1].hi), ops_.sub(operands[0].hi, operands[1].lo)};
      })
      .Case([&](arith::MaxSIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.max(operands[0].lo, operands[1].lo), ops_.max(operands[0].hi, operands[1].hi)};
      })
      .Case([&](arith::MinSIOp) -> std::optional<ValueInterval> {
        return ValueInterval{ops_.min(operands[0].lo, operands[1].lo), ops_.min(operands[0].hi, operands[1].hi)};
      })
      .Case([&](arith::MulIOp op) -> std::optional<ValueInterval> {
        if (const auto factor = constant_index(op.getRhs())) return scale(operands[0], *factor);
        if (const auto factor = constant_index(op.getLhs())) return scale(operands[1], *factor);
        return std::nullopt;
      })
      .Case([&](arith::DivSIOp) -> std::optional<ValueInterval> {
        if (!positive_divisor()) return std::nullopt;
        return ValueInterval{ops_.div(operands[0].lo, operands[1].lo), ops_.div(operands[0].hi, operands[1].lo)};
      })
      .Case([&](arith::FloorDivSIOp) -> std::optional<ValueInterval> {
        if (!positive_divisor()) return std::nullopt;
        return ValueInterval{ops_.floor_div(operands[0].lo, operands[1].lo),
                             ops_.floor_div(operands[0].hi, operands[1].lo)};
      })
      .Case([&](math::AbsIOp) -> std::optional<ValueInterval> {
        const mlir::Value below_zero = ops_.neg(operands[0].hi);
        return ValueInterval{ops_.max(ops_.max(operands[0].lo, below_zero), ops_.integer(0)),
                             ops_.max(ops_.neg(operands[0].lo), operands[0].hi)};
      })
      .Case([&](arith::SelectOp) -> std::optional<ValueInterval> {
        return select(operands[0], operands[1], operands[2]);
      })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

ValueInterval Intervals::compare(Predicate predicate, ValueInterval a, ValueInterval b) {
  switch (predicate) {
    case Predicate::slt:
    case Predicate::sle:
      return {ops_.compare(predicate, a.hi, b.lo), ops_.compare(predicate, a.lo, b.hi)};
    case Predicate::sgt:
    case Predicate::sge:
      return {ops_.compare(predicate, a.lo, b.hi), ops_.compare(predicate, a.hi, b.lo)};
    case Predicate::eq:
      return {ops_.both(ops_.ge(a.lo, b.hi), ops_.le(a.hi, b.lo)), ops_.both(ops_.le(a.lo, b.hi), ops_.ge(a.hi, b.lo))};
    case Predicate::ne:
      return {ops_.either(ops_.gt(a.lo, b.hi), ops_.lt(a.hi, b.lo)),
              ops_.either(ops_.lt(a.lo, b.hi), ops_.gt(a.hi, b.lo))};
    case Predicate::ult:
      return below_unsigned(a, b, false);
    case Predicate::ule:
      return below_unsigned(a, b, true);
    case Predicate::ugt:
      return below_unsigned(b, a, false);
    case Predicate::uge:
      return below_unsigned(b, a, true);
  }
  llvm_unreachable("all predicates are covered");
}

// a < b unsigned: a is not negative and b is, or they have the same sign and a < b.
ValueInterval Intervals::below_unsigned(ValueInterval a, ValueInterval b, bool or_equal) {
  const mlir::Value zero = ops_.integer(0);
  const ValueInterval a_positive{ops_.ge(a.lo, zero), ops_.ge(a.hi, zero)},
      b_positive{ops_.ge(b.lo, zero), ops_.ge(b.hi, zero)};
  const ValueInterval a_negative{ops_.lt(a.hi, zero), ops_.lt(a.lo, zero)},
      b_negative{ops_.lt(b.hi, zero), ops_.lt(b.lo, zero)};
  const ValueInterval below = compare(or_equal ? Predicate::sle : Predicate::slt, a, b);
  const auto combine = [&](mlir::Value ValueInterval::* end) {
    const mlir::Value across = ops_.both(a_positive.*end, b_negative.*end);
    const mlir::Value same =
        ops_.either(ops_.both(a_positive.*end, b_positive.*end), ops_.both(a_negative.*end, b_negative.*end));
    return ops_.either(across, ops_.both(same, below.*end));
  };
  return {combine(&ValueInterval::lo), combine(&ValueInterval::hi)};
}

ValueInterval Intervals::select(ValueInterval condition, ValueInterval a, ValueInterval b) {
  const bool is_bool = a.lo.getType().isInteger(1);
  const mlir::Value low = is_bool ? ops_.both(a.lo, b.lo) : ops_.min(a.lo, b.lo);
  const mlir::Value high = is_bool ? ops_.either(a.hi, b.hi) : ops_.max(a.hi, b.hi);
  return {ops_.select(condition.lo, a.lo, ops_.select(condition.hi, low, b.lo)),
          ops_.select(condition.lo, a.hi, ops_.select(condition.hi, high, b.hi))};
}

ValueInterval Intervals::scale(ValueInterval a, int64_t factor) {
  const mlir::Value constant = ops_.integer(factor);
  const mlir::Value lo = ops_.mul(a.lo, constant), hi = ops_.mul(a.hi, constant);
  return factor >= 0 ? ValueInterval{lo, hi} : ValueInterval{hi, lo};
}

}  // namespace hstujit
