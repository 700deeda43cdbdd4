// Expressions of integers and booleans whose constants fold: what follows from known operands is known, and each value
// is one node. Bound masks (bind.h) and all that is derived from a mask for kernels (derive.h) are built so.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/expression/expression.h"

namespace hstujit {

using SymbolValues = std::vector<std::pair<std::string_view, int64_t>>;

class FoldingBuilder : public ExpressionBuilder {
 public:
  Term operand(Term term, size_t i) const { return {node(term).operands[i]}; }
  // The value of a constant of any type.
  std::optional<int64_t> constant(Term term) const {
    return node(term).is_constant() ? std::optional(node(term).value) : std::nullopt;
  }

  // The expression anew by this builder, with these symbols as constants and without nodes that its root does not need.
  // Symbols that are left keep their order; names that it has none of are passed over. The builder is new before.
  Expression rebuild(const Expression& expression, const SymbolValues& values) &&;

 protected:
  Term make(Operator op, Term a, Term b, Term c) override;
  Term add_node(const Expression::Node& node) override;

  bool is(Term term, int64_t value) const { return constant(term) == value; }
  bool is_of(Term term, Operator op) const { return node(term).op == op; }

 private:
  Term sum(Term a, Term b);
  Term difference(Term a, Term b);
  std::optional<Term> extreme(Operator op, Term a, Term b);
  std::optional<Term> comparison(Operator op, Term a, Term b);
  std::optional<Term> junction(Operator op, Term a, Term b);
  std::optional<Term> choice(Term condition, Term a, Term b);
  bool never_above(Term a, Term b) const;
};

}  // namespace hstujit
