#include "compiler/expression/kernel_form.h"

namespace hstujit {

namespace {

bool is_order(Operator op) { return op >= Operator::kLt && op <= Operator::kGe; }
bool is_comparison(Operator op) { return op >= Operator::kEq && op <= Operator::kGe; }

}  // namespace

Operator mirrored(Operator comparison) {
  switch (comparison) {
    case Operator::kLt:
      return Operator::kGt;
    case Operator::kLe:
      return Operator::kGe;
    case Operator::kGt:
      return Operator::kLt;
    case Operator::kGe:
      return Operator::kLe;
    default:
      return comparison;
  }
}

Operator inverted(Operator comparison) {
  switch (comparison) {
    case Operator::kEq:
      return Operator::kNe;
    case Operator::kNe:
      return Operator::kEq;
    case Operator::kLt:
      return Operator::kGe;
    case Operator::kLe:
      return Operator::kGt;
    case Operator::kGt:
      return Operator::kLe;
    case Operator::kGe:
      return Operator::kLt;
    default:
      return comparison;
  }
}

Term KernelBuilder::make(Operator op, Term a, Term b, Term c) {
  if (is_order(op) && constant(a) && !constant(b)) return make(mirrored(op), b, a, c);
  if (op == Operator::kMod && !constant(a)) return sub(a, mul(floor_div(a, b), b));
  return FoldingBuilder::make(op, a, b, c);
}

KernelBuilder::OptionalEnds KernelBuilder::products(const Ends<Term>& a, const Ends<Term>& b) {
  const Term low = mul(a.low, b.low), left = mul(a.low, b.high), right = mul(a.high, b.low), high = mul(a.high, b.high);
  const Term least = min(min(min(low, left), right), high), most = max(max(max(low, left), right), high);
  return Ends<Term>{least, most};
}

namespace {

// Folds the negations of what is derived with the comparisons that they negate.
class WithoutNegations : public KernelBuilder {
 protected:
  Term make(Operator op, Term a, Term b, Term c) override {
    if (op != Operator::kNot || !is_comparison(node(a).op)) return KernelBuilder::make(op, a, b, c);
    return make(inverted(node(a).op), operand(a, 0), operand(a, 1), c);
  }
};

}  // namespace

Expression kernel_form(const Expression& expression, const SymbolValues& values) {
  return WithoutNegations().rebuild(expression, values);
}

}  // namespace hstujit
