// A condition for 32 values of one symbol ("the unknown") at once: the term of a word whose bit i is the condition
// where the unknown is first + i. Exact.
//
// Comparisons whose one side follows from the unknown by monotone operations become words of bits, conditions without
// it all bits or none, and what combines them is bitwise.
#pragma once

#include <optional>

#include "compiler/expression/inverse.h"

namespace hstujit {

class Bits : Inverse<Bits, Term> {
 public:
  // `known` has every symbol but the unknown, as a point.
  Bits(const Expression& source, KernelBuilder& builder, Bounds& known, int unknown, Term first)
      : Inverse(source, builder, known, unknown), first_(first) {}

  // Nothing where an operation has no rule: what depends on the unknown on both sides of a comparison, say.
  std::optional<Term> of(int condition);

 private:
  friend Inverse;

  Optional compared(const Node& node);
  Optional of_unknown(Term bound, bool below);
  Term if_true(Term condition) { return e_.select(condition, e_.word(~0U), e_.word(0)); }
  static Optional without_rule() { return std::nullopt; }
  Optional both(Optional a, Optional b) { return a && b ? Optional(e_.bit_and(*a, *b)) : std::nullopt; }
  Optional either(Optional a, Optional b) { return a && b ? Optional(e_.bit_or(*a, *b)) : std::nullopt; }
  Optional negate(Optional bits) { return bits ? Optional(e_.bit_not(*bits)) : std::nullopt; }
  Optional selected(const Node& select, Term bound, bool below);
  Optional chosen(const Node& select, Optional where_true, Optional where_false);

  Term first_;
};

}  // namespace hstujit
