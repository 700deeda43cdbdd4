#include "compiler/expression/bits.h"

namespace hstujit {

std::optional<Term> Bits::of(int condition) {
  if (!depends(condition)) return if_true(known_.of(condition)->low);
  const Node& node = source_.node(condition);
  switch (node.op) {
    case Operator::kAnd: {
      const Optional a = of(node.operands[0]), b = of(node.operands[1]);
      return both(a, b);
    }
    case Operator::kOr: {
      const Optional a = of(node.operands[0]), b = of(node.operands[1]);
      return either(a, b);
    }
    case Operator::kNot:
      return negate(of(node.operands[0]));
    case Operator::kSelect: {
      const Optional where_true = of(node.operands[1]), where_false = of(node.operands[2]);
      return chosen(node, where_true, where_false);
    }
    case Operator::kEq:
    case Operator::kNe:
    case Operator::kLt:
    case Operator::kLe:
    case Operator::kGt:
    case Operator::kGe:
      return compared(node);
    default:
      return std::nullopt;
  }
}

std::optional<Term> Bits::compared(const Node& node) {
  const auto operands = with_unknown_first(node, node.op);
  if (!operands) return std::nullopt;
  const auto [value, op, other] = *operands;
  const std::optional<TermInterval> bound = known_.of(other);
  if (!bound) return std::nullopt;
  switch (op) {
    case Operator::kLt:
      return negate(at_least(value, bound->low));
    case Operator::kLe:
      return at_most(value, bound->low);
    case Operator::kGt:
      return negate(at_most(value, bound->low));
    case Operator::kGe:
      return at_least(value, bound->low);
    default: {
      const Optional from = at_least(value, bound->low), to = at_most(value, bound->low);
      const Optional equal = both(from, to);
      return op == Operator::kEq ? equal : negate(equal);
    }
  }
}

std::optional<Term> Bits::of_unknown(Term bound, bool below) {
  const Term from = e_.bits_from(e_.sub(below ? e_.add(bound, e_.integer(1)) : bound, first_));
  return below ? e_.bit_not(from) : from;
}

std::optional<Term> Bits::selected(const Node& select, Term bound, bool below) {
  const Optional where_true = bounded(select.operands[1], bound, below);
  const Optional where_false = bounded(select.operands[2], bound, below);
  return chosen(select, where_true, where_false);
}

std::optional<Term> Bits::chosen(const Node& select, Optional where_true, Optional where_false) {
  if (!where_true || !where_false) return std::nullopt;
  if (!depends(select.operands[0])) {
    return e_.select(known_.of(select.operands[0])->low, *where_true, *where_false);
  }
  const Optional condition = of(select.operands[0]);
  const Optional if_so = both(condition, where_true), if_not = both(negate(condition), where_false);
  return either(if_so, if_not);
}

}  // namespace hstujit
