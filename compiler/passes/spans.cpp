#include "compiler/passes/spans.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

bool Spans::depends(Value value) {
  if (value == unknown_) return true;
  if (const auto it = depends_.find(value); it != depends_.end()) return it->second;
  mlir::Operation* operation = value.getDefiningOp();
  const bool result =
      operation && llvm::any_of(operation->getOperands(), [&](Value operand) { return depends(operand); });
  depends_[value] = result;
  return result;
}

std::optional<ValueSpan> Spans::where(Value condition, bool wanted) {
  if (mlir::matchPattern(condition, wanted ? mlir::m_One() : mlir::m_Zero())) return ValueSpan{};
  if (mlir::matchPattern(condition, wanted ? mlir::m_Zero() : mlir::m_One()))
    return ValueSpan{.lo = {}, .hi = {}, .condition = {}, .none = true};
  if (!depends(condition)) {
    const auto interval = intervals_.of(condition);
    if (!interval) return std::nullopt;
    return if_true(wanted ? interval->hi : ops_.negate(interval->lo));
  }
  return llvm::TypeSwitch<mlir::Operation*, std::optional<ValueSpan>>(condition.getDefiningOp())
      .Case([&](arith::AndIOp op) -> std::optional<ValueSpan> {
        const auto a = where(op.getLhs(), wanted), b = where(op.getRhs(), wanted);
        return wanted ? both(a, b) : either(a, b);
      })
      .Case([&](arith::OrIOp op) -> std::optional<ValueSpan> {
        const auto a = where(op.getLhs(), wanted), b = where(op.getRhs(), wanted);
        return wanted ? either(a, b) : both(a, b);
      })
      .Case([&](arith::XOrIOp op) -> std::optional<ValueSpan> {
        if (mlir::matchPattern(op.getRhs(), mlir::m_One())) return where(op.getLhs(), !wanted);
        return either(both(where(op.getLhs(), wanted), where(op.getRhs(), false)),
                      both(where(op.getLhs(), !wanted), where(op.getRhs(), true)));
      })
      .Case([&](arith::SelectOp op) -> std::optional<ValueSpan> {
        return either(both(where(op.getCondition(), true), where(op.getTrueValue(), wanted)),
                      both(where(op.getCondition(), false), where(op.getFalseValue(), wanted)));
      })
      .Case([&](arith::CmpIOp op) { return compared(op, wanted); })
      .Default([](mlir::Operation*) { return ValueSpan{}; });
}

std::optional<ValueSpan> Spans::compared(arith::CmpIOp compare, bool wanted) {
  Value value = compare.getLhs(), other = compare.getRhs();
  Predicate predicate = wanted ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate());
  if (depends(value) && depends(other)) return ValueSpan{};
  if (!value.getType().isIndex()) return ValueSpan{};
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
        return ValueSpan{};
    }
  }
  const auto bound = intervals_.of(other);
  if (!bound) return std::nullopt;
  switch (predicate) {
    case Predicate::slt:
      return at_most(value, ops_.sub(bound->hi, ops_.integer(1)));
    case Predicate::sle:
      return at_most(value, bound->hi);
    case Predicate::sgt:
      return at_least(value, next(bound->lo));
    case Predicate::sge:
      return at_least(value, bound->lo);
    case Predicate::eq: {
      if (value == unknown_)
        return ValueSpan{.lo = bound->lo, .hi = next(bound->hi), .condition = {}, .none = false, .never_empty = true};
      return both(at_least(value, bound->lo), at_most(value, bound->hi));
    }
    case Predicate::ult:
    case Predicate::ule: {
      // Below a bound that is not negative: between 0 and the bound.
      const auto constant = constant_index(other);
      if (!constant || *constant < 0) return ValueSpan{};
      const Value limit = ops_.integer(predicate == Predicate::ult ? *constant - 1 : *constant);
      return both(at_least(value, ops_.integer(0)), at_most(value, limit));
    }
    default:
      return ValueSpan{};
  }
}

std::optional<ValueSpan> Spans::at_least(Value value, Value bound) { return bounded(value, bound, false); }
std::optional<ValueSpan> Spans::at_most(Value value, Value bound) { return bounded(value, bound, true); }

// value <= bound when `below`, else value >= bound.
std::optional<ValueSpan> Spans::bounded(Value value, Value bound, bool below) {
  if (value == unknown_) {
    return below ? ValueSpan{.lo = {}, .hi = next(bound), .condition = {}}
                 : ValueSpan{.lo = bound, .hi = {}, .condition = {}};
  }
  if (!depends(value)) {
    const auto interval = intervals_.of(value);
    if (!interval) return std::nullopt;
    return if_true(below ? ops_.le(interval->lo, bound) : ops_.ge(interval->hi, bound));
  }
  return llvm::TypeSwitch<mlir::Operation*, std::optional<ValueSpan>>(value.getDefiningOp())
      .Case([&](arith::AddIOp op) -> std::optional<ValueSpan> {
        if (depends(op.getLhs()) && depends(op.getRhs())) return ValueSpan{};
        const Value with = depends(op.getLhs()) ? op.getLhs() : op.getRhs();
        const auto rest = intervals_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
        if (!rest) return std::nullopt;
        return bounded(with, ops_.sub(bound, below ? rest->lo : rest->hi), below);
      })
      .Case([&](arith::SubIOp op) -> std::optional<ValueSpan> {
        if (depends(op.getLhs()) && depends(op.getRhs())) return ValueSpan{};
        const auto rest = intervals_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
        if (!rest) return std::nullopt;
        if (depends(op.getLhs())) return bounded(op.getLhs(), ops_.add(bound, below ? rest->hi : rest->lo), below);
        return bounded(op.getRhs(), ops_.sub(below ? rest->lo : rest->hi, bound), !below);
      })
      .Case([&](arith::MaxSIOp op) -> std::optional<ValueSpan> {
        const auto a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
        return below ? both(a, b) : either(a, b);
      })
      .Case([&](arith::MinSIOp op) -> std::optional<ValueSpan> {
        const auto a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
        return below ? either(a, b) : both(a, b);
      })
      .Case([&](math::AbsIOp op) -> std::optional<ValueSpan> {
        const auto inside = bounded(op.getOperand(), bound, below);
        const auto mirrored = bounded(op.getOperand(), ops_.neg(bound), !below);
        return below ? both(inside, mirrored) : either(inside, mirrored);
      })
      .Case([&](arith::MulIOp op) -> std::optional<ValueSpan> {
        if (const auto factor = constant_index(op.getRhs())) return scaled(op.getLhs(), *factor, bound, below);
        if (const auto factor = constant_index(op.getLhs())) return scaled(op.getRhs(), *factor, bound, below);
        return ValueSpan{};
      })
      .Case<arith::DivSIOp, arith::FloorDivSIOp>([&](auto op) { return divided(*op, bound, below); })
      .Case([&](arith::SelectOp op) { return selected(op, below, bound); })
      .Default([](mlir::Operation*) { return ValueSpan{}; });
}

std::optional<ValueSpan> Spans::scaled(Value value, int64_t factor, Value bound, bool below) {
  if (factor == 0) return if_true(below ? ops_.ge(bound, ops_.integer(0)) : ops_.le(bound, ops_.integer(0)));
  if (factor < 0) return scaled(value, -factor, ops_.neg(bound), !below);
  const Value divisor = ops_.integer(factor);
  // value * k >= bound: value >= ceil(bound / k)
  const Value rounded = below ? bound : ops_.add(bound, ops_.integer(factor - 1));
  return bounded(value, ops_.floor_div(rounded, divisor), below);
}

std::optional<ValueSpan> Spans::divided(mlir::Operation& division, Value bound, bool below) {
  const auto divisor = constant_index(division.getOperand(1));
  if (!divisor || *divisor <= 0) return ValueSpan{};
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

std::optional<ValueSpan> Spans::selected(arith::SelectOp select, bool below, Value bound) {
  return either(both(where(select.getCondition(), true), bounded(select.getTrueValue(), bound, below)),
                both(where(select.getCondition(), false), bounded(select.getFalseValue(), bound, below)));
}

std::optional<ValueSpan> Spans::both(std::optional<ValueSpan> a, std::optional<ValueSpan> b) {
  if (!a || !b) return std::nullopt;
  if (a->none || b->none) return ValueSpan{.lo = {}, .hi = {}, .condition = {}, .none = true};
  ValueSpan result;
  result.lo = a->lo && b->lo ? ops_.max(a->lo, b->lo) : a->lo ? a->lo : b->lo;
  result.hi = a->hi && b->hi ? ops_.min(a->hi, b->hi) : a->hi ? a->hi : b->hi;
  result.condition = a->condition && b->condition ? ops_.both(a->condition, b->condition)
                     : a->condition               ? a->condition
                                                  : b->condition;
  return result;
}

std::optional<ValueSpan> Spans::either(std::optional<ValueSpan> a, std::optional<ValueSpan> b) {
  if (!a || !b) return std::nullopt;
  if (a->none) return b;
  if (b->none) return a;
  const auto bounded = [](const ValueSpan& span) { return span.lo || span.hi; };
  if ((!bounded(*a) && !a->condition) || (!bounded(*b) && !b->condition)) return ValueSpan{};
  if (!bounded(*a) && !bounded(*b)) return if_true(ops_.either(a->condition, b->condition));
  const ValueSpan x = without_emptiness(*a), y = without_emptiness(*b);
  ValueSpan result;
  if (x.lo && y.lo) result.lo = ops_.min(x.lo, y.lo);
  if (x.hi && y.hi) result.hi = ops_.max(x.hi, y.hi);
  result.never_empty = x.never_empty || y.never_empty;
  return result;
}

// An empty span must not widen a union: its ends become n and 0.
ValueSpan Spans::without_emptiness(const ValueSpan& span) {
  if (span.never_empty) return span;
  Value some = span.condition;
  if (span.lo || span.hi) {
    const Value low = span.lo ? span.lo : ops_.integer(0), high = span.hi ? span.hi : size_;
    Value filled = ops_.lt(low, high);
    // One end alone must lie within the universe; with both, clipping them first decides that.
    if (span.lo && span.hi) filled = ops_.lt(ops_.max(low, ops_.integer(0)), ops_.min(high, size_));
    some = some ? ops_.both(some, filled) : filled;
  }
  return {.lo = ops_.select(some, span.lo ? span.lo : ops_.integer(0), size_),
          .hi = ops_.select(some, span.hi ? span.hi : size_, ops_.integer(0)),
          .condition = {}};
}

std::pair<Value, Value> Spans::ends(const ValueSpan& span) {
  if (span.none) return {ops_.integer(0), ops_.integer(0)};
  const Value lo = span.lo ? ops_.max(span.lo, ops_.integer(0)) : ops_.integer(0);
  const Value hi = span.hi ? ops_.min(span.hi, size_) : size_;
  return {lo, span.condition ? ops_.select(span.condition, hi, ops_.integer(0)) : hi};
}

}  // namespace hstujit
