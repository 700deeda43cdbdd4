#include "compiler/passes/spans.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace arith = mlir::arith;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

std::optional<ValueSpan> Spans::where(Value condition, bool wanted) {
  if (mlir::matchPattern(condition, wanted ? mlir::m_One() : mlir::m_Zero())) return ValueSpan{};
  if (mlir::matchPattern(condition, wanted ? mlir::m_Zero() : mlir::m_One()))
    return ValueSpan{.lo = {}, .hi = {}, .condition = {}, .none = true};
  if (!depends(condition)) {
    const auto interval = known_.of(condition);
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
  const auto operands =
      with_unknown_first(compare, wanted ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate()));
  if (!operands) return without_rule();
  const auto [value, predicate, other] = *operands;
  const auto bound = known_.of(other);
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

std::optional<ValueSpan> Spans::of_unknown(Value bound, bool below) {
  return below ? ValueSpan{.lo = {}, .hi = next(bound), .condition = {}}
               : ValueSpan{.lo = bound, .hi = {}, .condition = {}};
}

std::optional<ValueSpan> Spans::selected(arith::SelectOp select, Value bound, bool below) {
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
