#include "compiler/expression/expression.h"

#include <algorithm>

namespace hstujit {

int Expression::symbol(std::string_view name) const {
  const auto found =
      std::find_if(symbols_.begin(), symbols_.end(), [&](const Symbol& symbol) { return symbol.name == name; });
  return found == symbols_.end() ? -1 : static_cast<int>(found - symbols_.begin());
}

std::vector<bool> Expression::users_of(int symbol) const {
  std::vector<bool> users(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const bool named = node.op == Operator::kSymbol || node.op == Operator::kRead;
    users[i] = (named && node.value == symbol) || std::ranges::any_of(node.operands, [&](int operand) {
                 return operand >= 0 && users[static_cast<size_t>(operand)];
               });
  }
  return users;
}

bool Expression::depends_on(std::string_view symbol) const {
  return users_of(this->symbol(symbol))[static_cast<size_t>(root_)];
}

Expression Expression::pruned() const {
  std::vector<bool> used(nodes_.size());
  used[static_cast<size_t>(root_)] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    for (const int operand : nodes_[i].operands) {
      if (used[i] && operand >= 0) used[static_cast<size_t>(operand)] = true;
    }
  }
  Expression result;
  result.symbols_ = symbols_;
  std::vector<int> places(nodes_.size(), -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!used[i]) continue;
    places[i] = static_cast<int>(result.nodes_.size());
    result.nodes_.push_back(nodes_[i]);
    for (int& operand : result.nodes_.back().operands) {
      if (operand >= 0) operand = places[static_cast<size_t>(operand)];
    }
  }
  result.root_ = static_cast<int>(result.nodes_.size()) - 1;
  return result;
}

Term ExpressionBuilder::add_node(const Expression::Node& node) {
  expression_.nodes_.push_back(node);
  return {static_cast<int>(expression_.nodes_.size()) - 1};
}

int ExpressionBuilder::declare(std::string_view name, bool boolean, bool real, bool wide) {
  const int index = expression_.symbol(name);
  if (index >= 0) return index;
  expression_.symbols_.push_back({std::string(name), boolean, real, wide});
  return static_cast<int>(expression_.symbols_.size()) - 1;
}

Term ExpressionBuilder::symbol(std::string_view name, bool boolean, bool real) {
  return add_node({Operator::kSymbol, boolean, {-1, -1, -1}, declare(name, boolean, real), real});
}

Term ExpressionBuilder::make(Operator op, Term a, Term b, Term c) {
  const Expression::Node& first = expression_.node(op == Operator::kSelect ? b.node : a.node);
  const bool boolean = op == Operator::kSelect ? first.boolean : op >= Operator::kEq;
  Expression::Node node = {op, boolean, {a.node, b.node, c.node}, 0, first.real && !boolean};
  const auto is_wide = [&](int operand) { return operand >= 0 && expression_.node(operand).wide; };
  node.wide = !boolean && !node.real && std::ranges::any_of(node.operands, is_wide);
  return add_node(node);
}

Term ExpressionBuilder::call(Function function, Term a, Term b) {
  return add_node({Operator::kCall, false, {a.node, b.node, -1}, 0, function != Function::kInt, function});
}

Term ExpressionBuilder::read(std::string_view operand, bool real, Term index) {
  Expression::Node node = {Operator::kRead, false, {index.node, -1, -1}, declare(operand, false, real, !real), real};
  node.wide = !real;
  return add_node(node);
}

Term ExpressionBuilder::copy(const Expression& other) {
  std::vector<Term> copies;
  for (Expression::Node node : other.nodes()) {
    for (int& operand : node.operands) {
      if (operand >= 0) operand = copies[static_cast<size_t>(operand)].node;
    }
    if (node.op == Operator::kSymbol || node.op == Operator::kRead) {
      const Expression::Symbol& symbol = other.symbols()[static_cast<size_t>(node.value)];
      node.value = declare(symbol.name, symbol.boolean, symbol.real, symbol.wide);
    }
    copies.push_back(add_node(node));
  }
  return copies[static_cast<size_t>(other.root())];
}

Expression ExpressionBuilder::finish(Term root) && {
  expression_.root_ = root.node;
  return std::move(expression_);
}

}  // namespace hstujit
