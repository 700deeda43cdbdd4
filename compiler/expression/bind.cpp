#include "compiler/expression/bind.h"

namespace hstujit {

namespace {

class Binder : public FoldingBuilder {
 protected:
  Term make(Operator op, Term a, Term b, Term c) override {
    switch (op) {
      case Operator::kNe:
        return either(lt(a, b), lt(b, a));
      case Operator::kGt:
        return lt(b, a);
      case Operator::kGe:
        return le(b, a);
      case Operator::kLt:
      case Operator::kLe:
        if (is_of(a, Operator::kAbs) && a.node != b.node) {
          const Term inner = operand(a, 0);
          return both(make(op, inner, b, {}), make(op, sub(integer(0), inner), b, {}));
        }
        break;
      case Operator::kAnd:
      case Operator::kOr:
        if (are_opposite(a, b)) return truth(op == Operator::kOr);
        if (const Term rest = without_opposite(op, a, b); rest.node >= 0) return make(op, a, rest, {});
        if (const Term rest = without_opposite(op, b, a); rest.node >= 0) return make(op, rest, b, {});
        break;
      case Operator::kNot:
        if (!constant(a)) return negation(a);
        break;
      case Operator::kSelect:
        if (!constant(a) && b.node != c.node && node(b).boolean) return either(both(a, b), both(negate(a), c));
        break;
      default:
        break;
    }
    return FoldingBuilder::make(op, a, b, c);
  }

 private:
  // x <= y and y < x
  bool are_opposite(Term a, Term b) const {
    const Expression::Node &x = node(a), &y = node(b);
    const bool of_order =
        (x.op == Operator::kLt && y.op == Operator::kLe) || (x.op == Operator::kLe && y.op == Operator::kLt);
    return of_order && x.operands[0] == y.operands[1] && x.operands[1] == y.operands[0];
  }

  // a and (x or not a) is a and x; the same of "or". None where `b` is of another form.
  Term without_opposite(Operator op, Term a, Term b) const {
    if (node(b).op != (op == Operator::kAnd ? Operator::kOr : Operator::kAnd)) return {};
    if (are_opposite(a, operand(b, 0))) return operand(b, 1);
    return are_opposite(a, operand(b, 1)) ? operand(b, 0) : Term();
  }

  // Negates a boolean that is not a constant, by way of its operands.
  Term negation(Term a) {
    const Operator op = node(a).op;
    const Term left = operand(a, 0), right = operand(a, 1);
    switch (op) {
      case Operator::kNot:
        return left;
      case Operator::kAnd:
      case Operator::kOr: {
        const Term not_left = negate(left), not_right = negate(right);
        return op == Operator::kAnd ? either(not_left, not_right) : both(not_left, not_right);
      }
      case Operator::kEq:
        return either(lt(left, right), lt(right, left));
      case Operator::kLt:
        return le(right, left);
      case Operator::kLe:
        return lt(right, left);
      default:
        return FoldingBuilder::make(Operator::kNot, a, {}, {});
    }
  }
};

}  // namespace

Expression bind_symbols(const Expression& expression, const SymbolValues& values) {
  return Binder().rebuild(expression, values);
}

}  // namespace hstujit
