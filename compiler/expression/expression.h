// Expressions of integers, booleans and real numbers, as data: what a mask or a score says is said once, evaluated
// (evaluate.h and spans.h of masks, formula.h of scores) and built into IR (compiler/ir/expression.h, scores.h).
//
// Nodes stand behind their operands, so that one pass in order evaluates all of them. Integers are 64 bits wide. Sums,
// differences and products wrap around at points and saturate over intervals, so that the two agree as long as nothing
// overflows. kDiv truncates; a division by zero is 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/expression/functions.h"

namespace hstujit {

// Sums, differences, products, extremes, magnitudes, comparisons and choices are of integers, or of real numbers alone.
enum class Operator : uint8_t {
  kConstant,  // of either type
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,  // by a constant above 0, as kMod
  kMod,       // what kFloorDiv leaves, from 0 to the divisor less one
  kMax,
  kMin,
  kAbs,
  kWord,      // a constant of 32 bits, from 0 to 2^32 - 1
  kBitsFrom,  // of an integer: the word whose bits from that number on are set, all where it is not positive
  kBitAnd,    // of words, as those below
  kBitOr,
  kBitNot,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kNot,
  kSelect,  // operands: condition, value where it holds, value where it does not
  kCall,    // a function of functions.h
  kRead,    // an element of an operand, whose symbol is `value`; its operand is the index, if it has one
};

// A node of the expression that it was made by.
struct Term {
  int node = -1;
};

class Expression {
 public:
  struct Node {
    Operator op = Operator::kConstant;
    bool boolean = false;
    std::array<int, 3> operands = {-1, -1, -1};
    int64_t value = 0;  // of a constant or word, 0 or 1 where it is boolean; of a symbol its index
    bool real = false;
    Function function = Function::kNone;  // of kCall
    double number = 0;                    // of a constant that is real
    bool wide = false;                    // an integer that is computed in 64 bits, since one is that it is made of

    bool operator==(const Node&) const = default;
    bool is_constant() const { return op == Operator::kConstant || op == Operator::kWord; }
    bool is_word() const { return op >= Operator::kWord && op <= Operator::kBitNot; }
  };
  struct Symbol {
    std::string name;
    bool boolean = false;
    bool real = false;
    bool wide = false;  // an integer that fits into no 32 bits
  };

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  int root() const { return root_; }
  // -1 when there is none of the name.
  int symbol(std::string_view name) const;
  // Whether the node's value may depend on the symbol's, by node.
  std::vector<bool> users_of(int symbol) const;
  bool depends_on(std::string_view symbol) const;
  // The same with the nodes that its root is made of, and no others.
  Expression pruned() const;

 private:
  friend class ExpressionBuilder;
  friend class FoldingBuilder;
  std::vector<Node> nodes_;
  std::vector<Symbol> symbols_;
  int root_ = -1;
};

// Nodes in the order in which they are asked for; nothing is folded (fold.h has a builder that does). A symbol of a
// name that is there already is the same one, as another node.
class ExpressionBuilder {
 public:
  ExpressionBuilder() = default;
  // Goes on behind the expression's nodes, which keep their numbers.
  explicit ExpressionBuilder(Expression expression) : expression_(std::move(expression)) {}
  virtual ~ExpressionBuilder() = default;
  ExpressionBuilder(ExpressionBuilder&&) = default;
  ExpressionBuilder& operator=(ExpressionBuilder&&) = default;

  Term integer(int64_t value) { return add_node({Operator::kConstant, false, {-1, -1, -1}, value}); }
  Term truth(bool value) { return add_node({Operator::kConstant, true, {-1, -1, -1}, value ? 1 : 0}); }
  Term number(std::string_view name) { return symbol(name, false); }
  Term flag(std::string_view name) { return symbol(name, true); }
  Term real(double value) {
    return add_node({Operator::kConstant, false, {-1, -1, -1}, 0, true, Function::kNone, value});
  }
  Term real_symbol(std::string_view name) { return symbol(name, false, true); }

  Term add(Term a, Term b) { return make(Operator::kAdd, a, b); }
  Term sub(Term a, Term b) { return make(Operator::kSub, a, b); }
  Term mul(Term a, Term b) { return make(Operator::kMul, a, b); }
  Term div(Term a, Term b) { return make(Operator::kDiv, a, b); }
  Term floor_div(Term a, Term b) { return make(Operator::kFloorDiv, a, b); }
  Term mod(Term a, Term b) { return make(Operator::kMod, a, b); }
  Term max(Term a, Term b) { return make(Operator::kMax, a, b); }
  Term min(Term a, Term b) { return make(Operator::kMin, a, b); }
  Term abs(Term a) { return make(Operator::kAbs, a); }
  Term word(uint32_t bits) { return add_node({Operator::kWord, false, {-1, -1, -1}, bits}); }
  Term bits_from(Term first) { return make(Operator::kBitsFrom, first); }
  Term bit_and(Term a, Term b) { return make(Operator::kBitAnd, a, b); }
  Term bit_or(Term a, Term b) { return make(Operator::kBitOr, a, b); }
  Term bit_not(Term a) { return make(Operator::kBitNot, a); }
  Term eq(Term a, Term b) { return make(Operator::kEq, a, b); }
  Term lt(Term a, Term b) { return make(Operator::kLt, a, b); }
  Term le(Term a, Term b) { return make(Operator::kLe, a, b); }
  Term gt(Term a, Term b) { return make(Operator::kGt, a, b); }
  Term ge(Term a, Term b) { return make(Operator::kGe, a, b); }
  Term both(Term a, Term b) { return make(Operator::kAnd, a, b); }
  Term either(Term a, Term b) { return make(Operator::kOr, a, b); }
  Term negate(Term a) { return make(Operator::kNot, a); }
  Term select(Term condition, Term a, Term b) { return make(Operator::kSelect, condition, a, b); }
  Term call(Function function, Term a, Term b = {});
  // An element of the operand of the name; none where it has no index.
  Term read(std::string_view operand, bool real, Term index);
  // Copies what the root of another expression is made of; symbols of one name are one.
  Term copy(const Expression& other);
  // Makes a node of any operator but a constant, a symbol and a call; operands that it has not are Term().
  Term apply(Operator op, Term a, Term b, Term c) { return make(op, a, b, c); }

  const Expression::Node& node(Term term) const { return expression_.node(term.node); }

  Expression finish(Term root) &&;

 protected:
  // Every node but constants and symbols, and every node: for builders that fold.
  virtual Term make(Operator op, Term a, Term b = {}, Term c = {});
  virtual Term add_node(const Expression::Node& node);
  // The index of a symbol that has no node yet.
  int declare(std::string_view name, bool boolean, bool real = false, bool wide = false);

  Expression expression_;

 private:
  Term symbol(std::string_view name, bool boolean, bool real = false);
};

}  // namespace hstujit
