#include "compiler/expression/ranges.h"

namespace hstujit {

TermRange Ranges::if_true(Term condition) {
  TermRange range;
  range.condition = condition;
  return range;
}

TermRange Ranges::where(int condition, bool wanted) {
  if (is_exhausted()) return anything();
  const Node& node = source_.node(condition);
  if (const std::optional<int64_t> known = constant(condition)) {
    TermRange range;
    range.none = (*known != 0) != wanted;
    return range;
  }
  if (!depends(condition)) {
    const TermInterval truth = *known_.of(condition);
    return if_true(wanted ? truth.high : e_.negate(truth.low));
  }
  switch (node.op) {
    case Operator::kAnd:
    case Operator::kOr: {
      const TermRange a = where(node.operands[0], wanted), b = where(node.operands[1], wanted);
      return (node.op == Operator::kAnd) == wanted ? both(a, b) : either(a, b);
    }
    case Operator::kNot:
      return where(node.operands[0], !wanted);
    case Operator::kSelect: {
      const TermRange second = where(node.operands[2], wanted);
      const TermRange if_not = both(where(node.operands[0], false), second);
      const TermRange first = where(node.operands[1], wanted);
      return either(both(where(node.operands[0], true), first), if_not);
    }
    case Operator::kEq:
    case Operator::kNe:
    case Operator::kLt:
    case Operator::kLe:
    case Operator::kGt:
    case Operator::kGe:
      return compared(node, wanted);
    default:
      return anything();
  }
}

TermRange Ranges::compared(const Node& node, bool wanted) {
  const auto operands = with_unknown_first(node, wanted ? node.op : inverted(node.op));
  if (!operands) return anything();
  const auto [value, op, other] = *operands;
  const std::optional<TermInterval> bound = known_.of(other);
  if (!bound) return anything();
  switch (op) {
    case Operator::kLt:
      return *at_most(value, e_.sub(bound->high, e_.integer(1)));
    case Operator::kLe:
      return *at_most(value, bound->high);
    case Operator::kGt:
      return *at_least(value, next(bound->low));
    case Operator::kGe:
      return *at_least(value, bound->low);
    default:
      break;
  }
  if (op != Operator::kEq) return anything();
  if (source_.node(value).op == Operator::kSymbol) {
    TermRange range;
    range.low = bound->low;
    range.high = next(bound->high);
    range.never_empty = true;
    return range;
  }
  return both(at_least(value, bound->low), at_most(value, bound->high));
}

std::optional<TermRange> Ranges::of_unknown(Term bound, bool below) {
  TermRange range;
  if (below) {
    range.high = next(bound);
  } else {
    range.low = bound;
  }
  return range;
}

std::optional<TermRange> Ranges::selected(const Node& select, Term bound, bool below) {
  const Optional second = bounded(select.operands[2], bound, below);
  const TermRange if_not = both(where(select.operands[0], false), second);
  const Optional first = bounded(select.operands[1], bound, below);
  return either(both(where(select.operands[0], true), first), if_not);
}

TermRange Ranges::both(const Optional& a, const Optional& b) {
  TermRange range;
  range.none = a->none || b->none;
  if (range.none) return range;
  range.low = a->low && b->low ? e_.max(*a->low, *b->low) : a->low ? a->low : b->low;
  range.high = a->high && b->high ? e_.min(*a->high, *b->high) : a->high ? a->high : b->high;
  range.condition = a->condition && b->condition ? e_.both(*a->condition, *b->condition)
                    : a->condition               ? a->condition
                                                 : b->condition;
  return range;
}

TermRange Ranges::either(const Optional& a, const Optional& b) {
  if (a->none) return *b;
  if (b->none) return *a;
  const auto bounded = [](const TermRange& range) { return range.low || range.high; };
  if ((!bounded(*a) && !a->condition) || (!bounded(*b) && !b->condition)) return anything();
  if (!bounded(*a) && !bounded(*b)) return if_true(e_.either(*a->condition, *b->condition));
  const TermRange x = without_emptiness(*a), y = without_emptiness(*b);
  TermRange range;
  if (x.low && y.low) range.low = e_.min(*x.low, *y.low);
  if (x.high && y.high) range.high = e_.max(*x.high, *y.high);
  range.never_empty = x.never_empty || y.never_empty;
  return range;
}

// An empty range must not widen a union: its ends become the size and 0.
TermRange Ranges::without_emptiness(const TermRange& range) {
  if (range.never_empty) return range;
  const Term zero = e_.integer(0), low = range.low.value_or(zero), high = range.high.value_or(size_);
  std::optional<Term> some = range.condition;
  if (range.low || range.high) {
    // One end alone must lie within the universe; with both, clipping them first decides that.
    const bool clipped = range.low && range.high;
    const Term last = clipped ? e_.min(high, size_) : high, first = clipped ? e_.max(low, zero) : low;
    const Term filled = e_.lt(first, last);
    some = some ? e_.both(*some, filled) : filled;
  }
  TermRange result;
  result.low = e_.select(*some, low, size_);
  result.high = e_.select(*some, high, zero);
  return result;
}

TermInterval Ranges::ends(const TermRange& range) {
  const Term zero = e_.integer(0);
  if (range.none) return {zero, zero};
  const Term low = range.low ? e_.max(*range.low, zero) : zero;
  const Term high = range.high ? e_.min(*range.high, size_) : size_;
  return {low, range.condition ? e_.select(*range.condition, high, zero) : high};
}

}  // namespace hstujit
