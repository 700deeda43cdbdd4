#include "compiler/expression/fold.h"

#include <algorithm>

#include "compiler/expression/evaluate.h"

namespace hstujit {

namespace {

constexpr std::array<int, 3> kNone = {-1, -1, -1};

bool commutes(Operator op) {
  switch (op) {
    case Operator::kAdd:
    case Operator::kMul:
    case Operator::kMax:
    case Operator::kMin:
    case Operator::kEq:
    case Operator::kNe:
    case Operator::kAnd:
    case Operator::kOr:
    case Operator::kBitAnd:
    case Operator::kBitOr:
      return true;
    default:
      return false;
  }
}

}  // namespace

Term FoldingBuilder::add_node(const Expression::Node& wanted) {
  const auto& nodes = expression_.nodes_;
  const auto found = std::find(nodes.begin(), nodes.end(), wanted);
  if (found != nodes.end()) return {static_cast<int>(found - nodes.begin())};
  return ExpressionBuilder::add_node(wanted);
}

Term FoldingBuilder::make(Operator op, Term a, Term b, Term c) {
  const auto value_of = [&](Term term) { return term.node < 0 ? 0 : constant(term); };
  const std::optional<int64_t> x = value_of(a), y = value_of(b), z = value_of(c);
  if (x && y && z) {
    if (op == Operator::kSelect) return *x != 0 ? b : c;
    const int64_t value = evaluate_point(op, *x, *y, *z);
    if (Expression::Node{op}.is_word()) return word(static_cast<uint32_t>(value));
    return op >= Operator::kEq ? truth(value != 0) : integer(value);
  }
  if (x && commutes(op)) return make(op, b, a, c);
  std::optional<Term> folded;
  switch (op) {
    case Operator::kAdd:
      return sum(a, b);
    case Operator::kSub:
      return difference(a, b);
    case Operator::kMul:
      if (y == 0) return b;
      if (y == 1) return a;
      if (y && is_of(a, Operator::kMul) && constant(operand(a, 1))) {
        return make(op, operand(a, 0), make(op, operand(a, 1), b, {}), {});
      }
      break;
    case Operator::kDiv:
    case Operator::kFloorDiv:
      if (y == 1) return a;
      break;
    case Operator::kMod:
      if (y == 1) return integer(0);
      break;
    case Operator::kMax:
    case Operator::kMin:
      folded = extreme(op, a, b);
      break;
    case Operator::kEq:
    case Operator::kNe:
    case Operator::kLt:
    case Operator::kLe:
    case Operator::kGt:
    case Operator::kGe:
      folded = comparison(op, a, b);
      break;
    case Operator::kAnd:
    case Operator::kOr:
    case Operator::kBitAnd:
    case Operator::kBitOr:
      folded = junction(op, a, b);
      break;
    case Operator::kNot:
    case Operator::kBitNot:
      if (is_of(a, op)) return operand(a, 0);
      break;
    case Operator::kSelect:
      folded = choice(a, b, c);
      break;
    default:
      break;
  }
  return folded ? *folded : ExpressionBuilder::make(op, a, b, c);
}

Term FoldingBuilder::sum(Term a, Term b) {
  if (is(b, 0)) return a;
  if (constant(b)) {
    const bool adds = is_of(a, Operator::kAdd);
    if (adds && constant(operand(a, 1))) return add(operand(a, 0), add(operand(a, 1), b));
    if (is_of(a, Operator::kSub) && constant(operand(a, 1))) return add(operand(a, 0), sub(b, operand(a, 1)));
    if (is_of(a, Operator::kSub) && constant(operand(a, 0))) return sub(add(operand(a, 0), b), operand(a, 1));
  }
  if (is_of(a, Operator::kSub) && operand(a, 1).node == b.node) return operand(a, 0);
  if (is_of(b, Operator::kSub) && operand(b, 1).node == a.node) return operand(b, 0);
  return ExpressionBuilder::make(Operator::kAdd, a, b, {});
}

Term FoldingBuilder::difference(Term a, Term b) {
  if (is(b, 0)) return a;
  if (a.node == b.node) return integer(0);
  const bool of_sum = is_of(a, Operator::kAdd), of_difference = is_of(a, Operator::kSub);
  if (constant(b)) {
    if (of_sum && constant(operand(a, 1))) return add(operand(a, 0), sub(operand(a, 1), b));
    if (of_difference && constant(operand(a, 1))) return sub(operand(a, 0), add(operand(a, 1), b));
    if (of_difference && constant(operand(a, 0))) return sub(sub(operand(a, 0), b), operand(a, 1));
  }
  if (constant(a)) {
    if (is_of(b, Operator::kAdd) && constant(operand(b, 1))) return sub(sub(a, operand(b, 1)), operand(b, 0));
    if (is_of(b, Operator::kSub) && constant(operand(b, 1))) return sub(add(operand(b, 1), a), operand(b, 0));
    if (is_of(b, Operator::kSub) && constant(operand(b, 0))) return add(operand(b, 1), sub(a, operand(b, 0)));
  }
  if (of_sum && operand(a, 1).node == b.node) return operand(a, 0);
  if (of_sum && operand(a, 0).node == b.node) return operand(a, 1);
  if (of_difference && operand(a, 0).node == b.node) return sub(integer(0), operand(a, 1));
  if (is_of(b, Operator::kSub)) {
    if (is(a, 0)) return sub(operand(b, 1), operand(b, 0));
    if (is(operand(b, 0), 0)) return add(a, operand(b, 1));
  }
  return ExpressionBuilder::make(Operator::kSub, a, b, {});
}

// max(a, max(a, b)) is max(a, b), max(a, min(a, b)) is a, and max(max(a, 1), 2) is max(a, 2).
std::optional<Term> FoldingBuilder::extreme(Operator op, Term a, Term b) {
  if (a.node == b.node) return a;
  const Operator other = op == Operator::kMax ? Operator::kMin : Operator::kMax;
  for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
    const bool same = is_of(y, op);
    if (!same && !is_of(y, other)) continue;
    if (operand(y, 0).node == x.node || operand(y, 1).node == x.node) return same ? y : x;
    if (same && constant(x) && constant(operand(y, 1)))
      return make(op, operand(y, 0), make(op, operand(y, 1), x, {}), {});
  }
  return std::nullopt;
}

// Whether a <= b follows from b being max(a, ..) or a being min(b, ..).
bool FoldingBuilder::never_above(Term a, Term b) const {
  const auto has = [&](Term of, Operator op, Term wanted) {
    return is_of(of, op) && (operand(of, 0).node == wanted.node || operand(of, 1).node == wanted.node);
  };
  return a.node == b.node || has(b, Operator::kMax, a) || has(a, Operator::kMin, b);
}

std::optional<Term> FoldingBuilder::comparison(Operator op, Term a, Term b) {
  if (a.node == b.node) return truth(op == Operator::kEq || op == Operator::kLe || op == Operator::kGe);
  if (op == Operator::kLe && never_above(a, b)) return truth(true);
  if (op == Operator::kGe && never_above(b, a)) return truth(true);
  if (op == Operator::kLt && never_above(b, a)) return truth(false);
  if (op == Operator::kGt && never_above(a, b)) return truth(false);
  // a - b < 0 is a < b, and a < b + 1 is a <= b.
  if (is_of(a, Operator::kSub) && is(b, 0)) return make(op, operand(a, 0), operand(a, 1), {});
  if (!is_of(b, Operator::kAdd)) return std::nullopt;
  const std::optional<int64_t> step = constant(operand(b, 1));
  if (op == Operator::kLt && step == 1) return make(Operator::kLe, a, operand(b, 0), {});
  if (op == Operator::kGe && step == 1) return make(Operator::kGt, a, operand(b, 0), {});
  if (op == Operator::kLe && step == -1) return make(Operator::kLt, a, operand(b, 0), {});
  if (op == Operator::kGt && step == -1) return make(Operator::kGe, a, operand(b, 0), {});
  return std::nullopt;
}

// "and" and "or" of conditions or words.
std::optional<Term> FoldingBuilder::junction(Operator op, Term a, Term b) {
  const bool words = op == Operator::kBitAnd || op == Operator::kBitOr;
  const bool conjunction = op == Operator::kAnd || op == Operator::kBitAnd;
  if (a.node == b.node) return a;
  if (const std::optional<int64_t> known = constant(b)) {
    const int64_t all = words ? 0xffffffff : 1;
    if (*known == (conjunction ? all : 0)) return a;
    if (*known == (conjunction ? 0 : all)) return b;
  }
  if (words) return std::nullopt;
  // a and (a and b) is a and b; a and (a or b) is a.
  const Operator other = conjunction ? Operator::kOr : Operator::kAnd;
  for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
    if (!is_of(y, op) && !is_of(y, other)) continue;
    if (operand(y, 0).node == x.node || operand(y, 1).node == x.node) return is_of(y, op) ? y : x;
  }
  return std::nullopt;
}

std::optional<Term> FoldingBuilder::choice(Term condition, Term a, Term b) {
  if (const std::optional<int64_t> known = constant(condition)) return *known != 0 ? a : b;
  if (a.node == b.node) return a;
  if (!node(a).boolean) return std::nullopt;
  if (is(a, 1)) return either(condition, b);
  if (is(b, 0)) return both(condition, a);
  if (is(a, 0)) return both(negate(condition), b);
  if (is(b, 1)) return either(negate(condition), a);
  return std::nullopt;
}

Expression FoldingBuilder::rebuild(const Expression& expression, const SymbolValues& values) && {
  std::vector<std::optional<int64_t>> bound;
  for (const Expression::Symbol& symbol : expression.symbols()) {
    const auto found = std::ranges::find(values, symbol.name, [](const auto& value) { return value.first; });
    bound.push_back(found == values.end() ? std::nullopt : std::optional(found->second));
    if (!bound.back()) declare(symbol.name, symbol.boolean);
  }
  std::vector<Term> terms;
  for (const Expression::Node& of : expression.nodes()) {
    const auto term = [&](size_t i) {
      return of.operands[i] < 0 ? Term() : terms[static_cast<size_t>(of.operands[i])];
    };
    if (of.is_constant()) {
      terms.push_back(add_node(of));
    } else if (of.op == Operator::kSymbol) {
      const auto place = static_cast<size_t>(of.value);
      const Expression::Symbol& symbol = expression.symbols()[place];
      terms.push_back(add_node(bound[place]
                                   ? Expression::Node{Operator::kConstant, of.boolean, kNone, *bound[place]}
                                   : Expression::Node{of.op, of.boolean, kNone, declare(symbol.name, symbol.boolean)}));
    } else if (of.op == Operator::kSelect) {
      int condition = of.operands[0];
      bool exchanged = false;
      for (; expression.node(condition).op == Operator::kNot; condition = expression.node(condition).operands[0]) {
        exchanged = !exchanged;
      }
      terms.push_back(
          make(of.op, terms[static_cast<size_t>(condition)], term(exchanged ? 2 : 1), term(exchanged ? 1 : 2)));
    } else {
      terms.push_back(make(of.op, term(0), term(1), term(2)));
    }
  }
  return std::move(*this).finish(terms[static_cast<size_t>(expression.root())]).pruned();
}

}  // namespace hstujit
