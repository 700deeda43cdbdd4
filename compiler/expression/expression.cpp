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
    users[i] = node.op == Operator::kSymbol ? node.value == symbol
                                            : std::any_of(node.operands.begin(), node.operands.end(), [&](int operand) {
                                                return operand >= 0 && users[static_cast<size_t>(operand)];
                                              });
  }
  return users;
}

Term ExpressionBuilder::add_node(const Expression::Node& node) {
  expression_.nodes_.push_back(node);
  return {static_cast<int>(expression_.nodes_.size()) - 1};
}

int ExpressionBuilder::declare(std::string_view name, bool boolean) {
  const int index = expression_.symbol(name);
  if (index >= 0) return index;
  expression_.symbols_.push_back({std::string(name), boolean});
  return static_cast<int>(expression_.symbols_.size()) - 1;
}

Term ExpressionBuilder::symbol(std::string_view name, bool boolean) {
  return add_node({Operator::kSymbol, boolean, {-1, -1, -1}, declare(name, boolean)});
}

Term ExpressionBuilder::make(Operator op, Term a, Term b, Term c) {
  const bool boolean = op == Operator::kSelect ? expression_.node(b.node).boolean : op >= Operator::kEq;
  return add_node({op, boolean, {a.node, b.node, c.node}, 0});
}

Expression ExpressionBuilder::finish(Term root) && {
  expression_.root_ = root.node;
  return std::move(expression_);
}

}  // namespace hstujit
