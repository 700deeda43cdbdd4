// Where an integer is at most, or at least, a bound, traced back through operations to one symbol that it follows from
// ("the unknown"). Other symbols lie in intervals. What a set of the unknown's values is, `Solver` says:
//
//   std::optional<Set> of_unknown(Term bound, bool below)   where the unknown is <= bound when `below`, else >= bound
//   Set if_true(Term condition)                             all values or none
//   std::optional<Set> without_rule()                       what is said of an operation that has no rule
//   std::optional<Set> both(a, b), either(a, b)
//   std::optional<Set> selected(const Node& select, Term bound, bool below)
#pragma once

#include <optional>
#include <vector>

#include "compiler/expression/bounds.h"

namespace hstujit {

template <class Solver, class Set>
class Inverse {
 protected:
  using Node = Expression::Node;
  using Optional = std::optional<Set>;

  // `known` has every symbol but the unknown.
  Inverse(const Expression& source, KernelBuilder& builder, Bounds& known, int unknown)
      : source_(source), e_(builder), known_(known), unknown_(unknown), users_(source.users_of(unknown)) {}

  bool depends(int node) const { return users_[static_cast<size_t>(node)]; }
  std::optional<int64_t> constant(int node) const {
    const Node& of = source_.node(node);
    return of.is_constant() ? std::optional(of.value) : std::nullopt;
  }

  // A comparison whose first operand follows from the unknown and whose second does not.
  struct Comparison {
    int value;
    Operator op;
    int other;
  };
  // Nothing where both follow from it.
  std::optional<Comparison> with_unknown_first(const Node& node, Operator op) const {
    const int a = node.operands[0], b = node.operands[1];
    if (depends(a) && depends(b)) return std::nullopt;
    return depends(b) ? Comparison{b, mirrored(op), a} : Comparison{a, op, b};
  }

  Optional at_least(int node, Term bound) { return bounded(node, bound, false); }
  Optional at_most(int node, Term bound) { return bounded(node, bound, true); }

  // Parts are solved more than once where one is within another: an abs for both signs, a select for both values of its
  // condition. So there is a limit, past which there is no rule.
  bool is_exhausted() { return steps_++ >= kMostSteps; }

  // node <= bound when `below`, else node >= bound.
  Optional bounded(int index, Term bound, bool below) {
    if (is_exhausted()) return solver().without_rule();
    const Node& node = source_.node(index);
    if (!depends(index)) {
      const std::optional<TermInterval> interval = known_.of(index);
      if (!interval) return solver().without_rule();
      return solver().if_true(below ? e_.le(interval->low, bound) : e_.ge(interval->high, bound));
    }
    const int a = node.operands[0], b = node.operands[1];
    switch (node.op) {
      case Operator::kSymbol:
        return solver().of_unknown(bound, below);
      case Operator::kAdd: {
        if (depends(a) && depends(b)) return solver().without_rule();
        const std::optional<TermInterval> rest = known_.of(depends(a) ? b : a);
        if (!rest) return solver().without_rule();
        return bounded(depends(a) ? a : b, e_.sub(bound, below ? rest->low : rest->high), below);
      }
      case Operator::kSub: {
        if (depends(a) && depends(b)) return solver().without_rule();
        const std::optional<TermInterval> rest = known_.of(depends(a) ? b : a);
        if (!rest) return solver().without_rule();
        if (depends(a)) return bounded(a, e_.add(bound, below ? rest->high : rest->low), below);
        return bounded(b, e_.sub(below ? rest->low : rest->high, bound), !below);
      }
      case Operator::kMax: {
        const Optional x = bounded(a, bound, below), y = bounded(b, bound, below);
        return below ? solver().both(x, y) : solver().either(x, y);
      }
      case Operator::kMin: {
        const Optional x = bounded(a, bound, below), y = bounded(b, bound, below);
        return below ? solver().either(x, y) : solver().both(x, y);
      }
      case Operator::kAbs: {
        const Optional inside = bounded(a, bound, below), mirror = bounded(a, e_.sub(e_.integer(0), bound), !below);
        return below ? solver().both(inside, mirror) : solver().either(inside, mirror);
      }
      case Operator::kMul:
        if (const auto factor = constant(b)) return scaled(a, *factor, bound, below);
        if (const auto factor = constant(a)) return scaled(b, *factor, bound, below);
        return solver().without_rule();
      case Operator::kDiv:
      case Operator::kFloorDiv:
        return divided(node, bound, below);
      case Operator::kSelect:
        return solver().selected(node, bound, below);
      default:
        return solver().without_rule();
    }
  }

  const Expression& source_;
  KernelBuilder& e_;
  Bounds& known_;
  int unknown_;  // a symbol

 private:
  static constexpr int kMostSteps = 1024;
  int steps_ = 0;

  Solver& solver() { return static_cast<Solver&>(*this); }

  Optional scaled(int node, int64_t factor, Term bound, bool below) {
    const Term zero = e_.integer(0);
    if (factor == 0) return solver().if_true(below ? e_.ge(bound, zero) : e_.le(bound, zero));
    if (factor < 0) return scaled(node, -factor, e_.sub(zero, bound), !below);
    const Term divisor = e_.integer(factor);
    // node * k >= bound: node >= ceil(bound / k)
    const Term rounded = below ? bound : e_.add(bound, e_.integer(factor - 1));
    return bounded(node, e_.floor_div(rounded, divisor), below);
  }

  Optional divided(const Node& node, Term bound, bool below) {
    const std::optional<int64_t> divisor = constant(node.operands[1]);
    if (!divisor || *divisor <= 0) return solver().without_rule();
    const Term product = e_.mul(bound, e_.integer(*divisor)), rest = e_.integer(*divisor - 1);
    if (node.op == Operator::kFloorDiv) {
      return bounded(node.operands[0], below ? e_.add(product, rest) : product, below);
    }
    // Rounds to zero: the quotient 0 has numerators on both sides.
    const Term zero = e_.integer(0);
    const Term limit = below ? e_.select(e_.ge(bound, zero), e_.add(product, rest), product)
                             : e_.select(e_.le(bound, zero), e_.sub(product, rest), product);
    return bounded(node.operands[0], limit, below);
  }

  std::vector<bool> users_;  // nodes that follow from the unknown
};

}  // namespace hstujit
