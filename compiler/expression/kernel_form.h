// Expressions in the form in which kernels compute them: constants are folded and stand on the right of comparisons, a
// negated comparison is another one, and a remainder is what a quotient leaves. Otherwise operations stay as they are
// written.
#pragma once

#include "compiler/expression/fold.h"
#include "compiler/expression/interval_rules.h"

namespace hstujit {

// A comparison said otherwise: a < b is b > a, and not a >= b.
Operator mirrored(Operator comparison);
Operator inverted(Operator comparison);

// As the domain of IntervalRules, too.
class KernelBuilder : public FoldingBuilder {
 public:
  using Value = Term;
  using OptionalEnds = std::optional<Ends<Term>>;

  OptionalEnds products(const Ends<Term>& a, const Ends<Term>& b);
  static OptionalEnds quotients(const Ends<Term>&, const Ends<Term>&) { return std::nullopt; }
  static OptionalEnds floor_quotients(const Ends<Term>&, const Ends<Term>&) { return std::nullopt; }
  static OptionalEnds remainders(const Ends<Term>&, const Ends<Term>&) { return std::nullopt; }

 protected:
  Term make(Operator op, Term a, Term b, Term c) override;
};

// The expression with these symbols as constants; others keep their order.
Expression kernel_form(const Expression& expression, const SymbolValues& values);

}  // namespace hstujit
