#include "compiler/expression/bind.h"

#include <algorithm>

#include "compiler/expression/evaluate.h"

namespace hstujit {

class Binder {
 public:
  Binder(const Expression& expression, const SymbolValues& values) : expression_(expression) {
    for (const Expression::Symbol& symbol : expression.symbols()) {
      const auto bound =
          std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == symbol.name; });
      if (bound != values.end()) {
        places_.push_back({true, bound->second});
      } else {
        places_.push_back({false, static_cast<int64_t>(builder_.expression_.symbols_.size())});
        builder_.expression_.symbols_.push_back(symbol);
      }
    }
  }

  Expression run() && {
    std::vector<Term> terms;
    for (const Expression::Node& node : expression_.nodes()) {
      const auto operand = [&](size_t i) {
        return node.operands[i] < 0 ? Term() : terms[static_cast<size_t>(node.operands[i])];
      };
      if (node.op == Operator::kConstant) {
        terms.push_back(constant(node.boolean, node.value));
      } else if (node.op == Operator::kSymbol) {
        const auto& [bound, value] = places_[static_cast<size_t>(node.value)];
        terms.push_back(bound ? constant(node.boolean, value) : once({Operator::kSymbol, node.boolean, kNone, value}));
      } else {
        terms.push_back(make(node.op, operand(0), operand(1), operand(2)));
      }
    }
    return used(terms[static_cast<size_t>(expression_.root())]);
  }

 private:
  static constexpr std::array<int, 3> kNone = {-1, -1, -1};

  const Expression::Node& node(Term term) const { return builder_.expression_.node(term.node); }
  bool is_constant(Term term) const { return node(term).op == Operator::kConstant; }
  bool is(Term term, int64_t value) const { return is_constant(term) && node(term).value == value; }
  Term operand(Term term, size_t i) const { return {node(term).operands[i]}; }

  Term constant(bool boolean, int64_t value) { return once({Operator::kConstant, boolean, kNone, value}); }
  Term truth(bool value) { return constant(true, value ? 1 : 0); }

  Term once(const Expression::Node& wanted) {
    const auto& nodes = builder_.expression_.nodes_;
    const auto found = std::find(nodes.begin(), nodes.end(), wanted);
    return found == nodes.end() ? builder_.add_node(wanted) : Term{static_cast<int>(found - nodes.begin())};
  }

  Term make(Operator op, Term a, Term b = {}, Term c = {}) {
    const bool constants = is_constant(a) && (b.node < 0 || is_constant(b)) && (c.node < 0 || is_constant(c));
    const bool boolean = op == Operator::kSelect ? node(b).boolean : op >= Operator::kEq;
    if (constants) {
      return constant(
          boolean, evaluate_point(op, node(a).value, b.node < 0 ? 0 : node(b).value, c.node < 0 ? 0 : node(c).value));
    }
    switch (op) {
      case Operator::kAdd:
        if (is(a, 0)) return b;
        if (is(b, 0)) return a;
        break;
      case Operator::kSub:
        if (is(b, 0)) return a;
        if (a.node == b.node) return constant(false, 0);
        break;
      case Operator::kMul:
        if (is(a, 1)) return b;
        if (is(b, 1)) return a;
        break;
      case Operator::kDiv:
      case Operator::kFloorDiv:
        if (is(b, 1)) return a;
        break;
      case Operator::kMod:
        if (is(b, 1)) return constant(false, 0);
        break;
      case Operator::kMax:
      case Operator::kMin:
        if (a.node == b.node) return a;
        break;
      case Operator::kEq:
        if (a.node == b.node) return truth(true);
        break;
      case Operator::kGt:
        return make(Operator::kLt, b, a);
      case Operator::kGe:
        return make(Operator::kLe, b, a);
      case Operator::kLt:
      case Operator::kLe:
        if (a.node == b.node) return truth(op == Operator::kLe);
        if (node(a).op == Operator::kAbs) {
          const Term inner = operand(a, 0);
          return make(Operator::kAnd, make(op, inner, b), make(op, make(Operator::kSub, constant(false, 0), inner), b));
        }
        break;
      case Operator::kAnd:
      case Operator::kOr: {
        const int64_t neutral = op == Operator::kAnd ? 1 : 0;
        if (is(a, neutral) || is(b, 1 - neutral) || a.node == b.node) return b;
        if (is(b, neutral) || is(a, 1 - neutral)) return a;
        if (are_opposite(a, b)) return truth(op == Operator::kOr);
        if (const Term rest = without_opposite(op, a, b); rest.node >= 0) return make(op, a, rest);
        if (const Term rest = without_opposite(op, b, a); rest.node >= 0) return make(op, rest, b);
        break;
      }
      case Operator::kNot:
        return negation(a);
      case Operator::kSelect:
        if (is_constant(a)) return node(a).value != 0 ? b : c;
        if (b.node == c.node) return b;
        if (boolean) return make(Operator::kOr, make(Operator::kAnd, a, b), make(Operator::kAnd, negation(a), c));
        break;
      default:
        break;
    }
    return once({op, boolean, {a.node, b.node, c.node}, 0});
  }

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

  // Of a boolean that is no constant, by way of its operands.
  Term negation(Term a) {
    const Operator op = node(a).op;
    const Term left = operand(a, 0), right = operand(a, 1);
    switch (op) {
      case Operator::kNot:
        return left;
      case Operator::kAnd:
      case Operator::kOr: {
        const Term not_left = is_constant(left) ? truth(is(left, 0)) : negation(left);
        const Term not_right = is_constant(right) ? truth(is(right, 0)) : negation(right);
        return make(op == Operator::kAnd ? Operator::kOr : Operator::kAnd, not_left, not_right);
      }
      case Operator::kEq:
        return make(Operator::kOr, make(Operator::kLt, left, right), make(Operator::kLt, right, left));
      case Operator::kLt:
        return make(Operator::kLe, right, left);
      case Operator::kLe:
        return make(Operator::kLt, right, left);
      default:
        return once({Operator::kNot, true, {a.node, -1, -1}, 0});
    }
  }

  // Without the nodes that the root does not need.
  Expression used(Term root) {
    auto& nodes = builder_.expression_.nodes_;
    std::vector<int> places(nodes.size(), -1);
    places[static_cast<size_t>(root.node)] = 0;
    for (size_t i = nodes.size(); i-- > 0;) {
      if (places[i] < 0) continue;
      for (const int operand : nodes[i].operands) {
        if (operand >= 0) places[static_cast<size_t>(operand)] = 0;
      }
    }
    std::vector<Expression::Node> kept;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (places[i] < 0) continue;
      places[i] = static_cast<int>(kept.size());
      kept.push_back(nodes[i]);
      for (int& operand : kept.back().operands) {
        if (operand >= 0) operand = places[static_cast<size_t>(operand)];
      }
    }
    nodes = std::move(kept);
    return std::move(builder_).finish({places[static_cast<size_t>(root.node)]});
  }

  struct Place {
    bool bound;
    int64_t value;  // of a bound symbol, or the other's index among those that are left
  };

  const Expression& expression_;
  std::vector<Place> places_;  // by symbol
  ExpressionBuilder builder_;
};

Expression bind_symbols(const Expression& expression, const SymbolValues& values) {
  return Binder(expression, values).run();
}

}  // namespace hstujit
