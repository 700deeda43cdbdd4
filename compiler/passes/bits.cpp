#include "compiler/passes/bits.h"

#include "compiler/ir/hstu.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace arith = mlir::arith;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

Value Bits::word(int64_t bits) {
  return arith::ConstantOp::create(ops_.builder(), ops_.location(), ops_.builder().getI32IntegerAttr(bits));
}

Value Bits::if_true(Value condition) {
  const Value all = word(-1), none = word(0);
  return ops_.select(condition, all, none);
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
  if (!depends(condition)) {
    const auto point = known_.of(condition);
    if (!point) return std::nullopt;
    return if_true(point->lo);
  }
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
        return chosen(op, if_true, if_false);
      })
      .Case([&](arith::CmpIOp op) { return compared(op); })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

std::optional<Value> Bits::compared(arith::CmpIOp compare) {
  const auto operands = with_unknown_first(compare, compare.getPredicate());
  if (!operands) return without_rule();
  const auto [value, predicate, other] = *operands;
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

std::optional<Value> Bits::of_unknown(Value bound, bool below) {
  const Value first = ops_.sub(below ? ops_.add(bound, ops_.integer(1)) : bound, first_);
  const Value from = hstu::BitsFromOp::create(ops_.builder(), ops_.location(), first);
  return below ? negate(from) : from;
}

std::optional<Value> Bits::selected(arith::SelectOp select, Value bound, bool below) {
  const Optional if_true = bounded(select.getTrueValue(), bound, below),
                 if_false = bounded(select.getFalseValue(), bound, below);
  return chosen(select, if_true, if_false);
}

std::optional<Value> Bits::chosen(arith::SelectOp select, Optional if_true, Optional if_false) {
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
