#include "compiler/passes/bits.h"

#include "compiler/ir/hstu.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

bool Bits::depends(Value value) {
  if (value == unknown_) return true;
  if (const auto it = depends_.find(value); it != depends_.end()) return it->second;
  mlir::Operation* operation = value.getDefiningOp();
  const bool result =
      operation && llvm::any_of(operation->getOperands(), [&](Value operand) { return depends(operand); });
  depends_[value] = result;
  return result;
}

Value Bits::word(int64_t bits) {
  return arith::ConstantOp::create(ops_.builder(), ops_.location(), ops_.builder().getI32IntegerAttr(bits));
}

Value Bits::all_or_none(Value condition) {
  const Value all = word(-1), none = word(0);
  return ops_.select(condition, all, none);
}

std::optional<Value> Bits::of_known(Value condition) {
  const auto point = known_.of(condition);
  if (!point) return std::nullopt;
  return all_or_none(point->lo);
}

std::optional<Value> Bits::both(Optional a, Optional b) { return a && b ? Optional(ops_.both(*a, *b)) : std::nullopt; }

std::optional<Value> Bits::either(Optional a, Optional b) {
  return a && b ? Optional(ops_.either(*a, *b)) : std::nullopt;
}

std::optional<Value> Bits::negate(Optional bits) {
  if (!bits) return std::nullopt;
  return arith::XOrIOp::create(ops_.builder(), ops_.location(), *bits, word(-1));
}

std::optional<Value> Bits::of(Value condition) {
  if (!depends(condition)) return of_known(condition);
  mlir::Operation* operation = condition.getDefiningOp();
  return llvm::TypeSwitch<mlir::Operation*, Optional>(operation)
      .Case([&](arith::AndIOp op) {
        const Optional a = of(op.getLhs()), b = of(op.getRhs());
        return both(a, b);
      })
      .Case([&](arith::OrIOp op) {
        const Optional a = of(op.getLhs()), b = of(op.getRhs());
        return either(a, b);
      })
      .Case([&](arith::XOrIOp op) -> Optional {
        if (mlir::matchPattern(op.getRhs(), mlir::m_One())) return negate(of(op.getLhs()));
        const Optional a = of(op.getLhs()), b = of(op.getRhs());
        if (!a || !b) return std::nullopt;
        return arith::XOrIOp::create(ops_.builder(), ops_.location(), *a, *b);
      })
      .Case([&](arith::SelectOp op) {
        const Optional if_true = of(op.getTrueValue()), if_false = of(op.getFalseValue());
        return selected(op, if_true, if_false);
      })
      .Case([&](arith::CmpIOp op) { return compared(op); })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

std::optional<Value> Bits::compared(arith::CmpIOp compare) {
  Value value = compare.getLhs(), other = compare.getRhs();
  Predicate predicate = compare.getPredicate();
  if (!value.getType().isIndex() || (depends(value) && depends(other))) return std::nullopt;
  if (depends(other)) {
    std::swap(value, other);
    switch (predicate) {
      case Predicate::slt:
        predicate = Predicate::sgt;
        break;
      case Predicate::sle:
        predicate = Predicate::sge;
        break;
      case Predicate::sgt:
        predicate = Predicate::slt;
        break;
      case Predicate::sge:
        predicate = Predicate::sle;
        break;
      case Predicate::eq:
      case Predicate::ne:
        break;
      default:
        return std::nullopt;
    }
  }
  const auto bound = known_.of(other);
  if (!bound) return std::nullopt;
  switch (predicate) {
    case Predicate::slt:
      return negate(at_least(value, bound->lo));
    case Predicate::sle:
      return at_most(value, bound->lo);
    case Predicate::sgt:
      return negate(at_most(value, bound->lo));
    case Predicate::sge:
      return at_least(value, bound->lo);
    case Predicate::eq:
    case Predicate::ne: {
      const Optional from = at_least(value, bound->lo), to = at_most(value, bound->lo);
      const Optional equal = both(from, to);
      return predicate == Predicate::eq ? equal : negate(equal);
    }
    case Predicate::ult:
    case Predicate::ule: {
      // Below a bound that is not negative: between 0 and the bound.
      const auto constant = constant_index(other);
      if (!constant || *constant < 0) return std::nullopt;
      const Optional from = at_least(value, ops_.integer(0));
      const Optional to = at_most(value, ops_.integer(predicate == Predicate::ult ? *constant - 1 : *constant));
      return both(from, to);
    }
    default:
      return std::nullopt;
  }
}

std::optional<Value> Bits::at_least(Value value, Value bound) { return bounded(value, bound, false); }
std::optional<Value> Bits::at_most(Value value, Value bound) { return bounded(value, bound, true); }

// value <= bound when `below`, else value >= bound.
std::optional<Value> Bits::bounded(Value value, Value bound, bool below) {
  if (value == unknown_) {
    const Value first = ops_.sub(below ? ops_.add(bound, ops_.integer(1)) : bound, first_);
    const Value from = hstu::BitsFromOp::create(ops_.builder(), ops_.location(), first);
    return below ? negate(from) : from;
  }
  if (!depends(value)) {
    const auto point = known_.of(value);
    if (!point) return std::nullopt;
    return all_or_none(below ? ops_.le(point->lo, bound) : ops_.ge(point->lo, bound));
  }
  mlir::Operation* operation = value.getDefiningOp();
  return llvm::TypeSwitch<mlir::Operation*, Optional>(operation)
      .Case([&](arith::AddIOp op) -> Optional {
        if (depends(op.getLhs()) && depends(op.getRhs())) return std::nullopt;
        const Value with = depends(op.getLhs()) ? op.getLhs() : op.getRhs();
        const auto rest = known_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
        if (!rest) return std::nullopt;
        return bounded(with, ops_.sub(bound, rest->lo), below);
      })
      .Case([&](arith::SubIOp op) -> Optional {
        if (depends(op.getLhs()) && depends(op.getRhs())) return std::nullopt;
        const auto rest = known_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
        if (!rest) return std::nullopt;
        if (depends(op.getLhs())) return bounded(op.getLhs(), ops_.add(bound, rest->lo), below);
        return bounded(op.getRhs(), ops_.sub(rest->lo, bound), !below);
      })
      .Case([&](arith::MaxSIOp op) {
        const Optional a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
        return below ? both(a, b) : either(a, b);
      })
      .Case([&](arith::MinSIOp op) {
        const Optional a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
        return below ? either(a, b) : both(a, b);
      })
      .Case([&](math::AbsIOp op) {
        const Optional inside = bounded(op.getOperand(), bound, below);
        const Optional mirrored = bounded(op.getOperand(), ops_.neg(bound), !below);
        return below ? both(inside, mirrored) : either(inside, mirrored);
      })
      .Case([&](arith::MulIOp op) -> Optional {
        if (const auto factor = constant_index(op.getRhs())) return scaled(op.getLhs(), *factor, bound, below);
        if (const auto factor = constant_index(op.getLhs())) return scaled(op.getRhs(), *factor, bound, below);
        return std::nullopt;
      })
      .Case<arith::DivSIOp, arith::FloorDivSIOp>([&](auto op) { return divided(*op, bound, below); })
      .Case([&](arith::SelectOp op) {
        const Optional if_true = bounded(op.getTrueValue(), bound, below),
                       if_false = bounded(op.getFalseValue(), bound, below);
        return selected(op, if_true, if_false);
      })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

std::optional<Value> Bits::scaled(Value value, int64_t factor, Value bound, bool below) {
  if (factor == 0) return all_or_none(below ? ops_.ge(bound, ops_.integer(0)) : ops_.le(bound, ops_.integer(0)));
  if (factor < 0) return scaled(value, -factor, ops_.neg(bound), !below);
  const Value divisor = ops_.integer(factor);
  // value * k >= bound: value >= ceil(bound / k)
  const Value rounded = below ? bound : ops_.add(bound, ops_.integer(factor - 1));
  return bounded(value, ops_.floor_div(rounded, divisor), below);
}

std::optional<Value> Bits::divided(mlir::Operation& division, Value bound, bool below) {
  const auto divisor = constant_index(division.getOperand(1));
  if (!divisor || *divisor <= 0) return std::nullopt;
  const Value product = ops_.mul(bound, ops_.integer(*divisor));
  const Value rest = ops_.integer(*divisor - 1);
  if (mlir::isa<arith::FloorDivSIOp>(division)) {
    return bounded(division.getOperand(0), below ? ops_.add(product, rest) : product, below);
  }
  // Rounds to zero: the quotient 0 has numerators on both sides.
  const Value zero = ops_.integer(0);
  const Value limit = below ? ops_.select(ops_.ge(bound, zero), ops_.add(product, rest), product)
                            : ops_.select(ops_.le(bound, zero), ops_.sub(product, rest), product);
  return bounded(division.getOperand(0), limit, below);
}

std::optional<Value> Bits::selected(arith::SelectOp select, Optional if_true, Optional if_false) {
  if (!if_true || !if_false) return std::nullopt;
  if (!depends(select.getCondition())) {
    const auto condition = known_.of(select.getCondition());
    if (!condition) return std::nullopt;
    return ops_.select(condition->lo, *if_true, *if_false);
  }
  const Optional condition = of(select.getCondition());
  const Optional where_true = both(condition, if_true), where_false = both(negate(condition), if_false);
  return either(where_true, where_false);
}

}  // namespace hstujit
