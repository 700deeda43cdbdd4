#include "compiler/spec/operators/hstu_attention/score_sites.h"

#include <algorithm>
#include <string>

#include "compiler/spec/operators/hstu_attention/shared_value.h"

namespace hstujit {

namespace {

const std::string& name_of(const Expression& score, const Expression::Node& node) {
  return score.symbols()[static_cast<size_t>(node.value)].name;
}

// Whether the node reads an operand whose gradient is a sum over all pairs.
bool is_site(const Expression& score, const Expression::Node& node, const std::vector<Operand>& operands) {
  return node.op == Operator::kRead && std::ranges::any_of(operands, [&](const Operand& operand) {
           return operand.has_sites() && operand.name == name_of(score, node);
         });
}

bool has_sites(const Expression& score, const std::vector<Operand>& operands) {
  return std::ranges::any_of(score.nodes(),
                             [&](const Expression::Node& node) { return is_site(score, node, operands); });
}

}  // namespace

bool sites_add_to_x(const Expression& score, const std::vector<Operand>& operands) {
  const Expression used = score.pruned();
  const std::vector<Expression::Node>& nodes = used.nodes();
  std::vector<std::vector<int>> users(nodes.size());
  for (int user = 0; user < static_cast<int>(nodes.size()); ++user) {
    for (const int operand : used.node(user).operands) {
      if (operand >= 0) users[static_cast<size_t>(operand)].push_back(user);
    }
  }
  // The sum that x enters, from where it is used: in one place, and not with a minus sign.
  int sum = -1;
  for (int number = 0; number < static_cast<int>(nodes.size()); ++number) {
    const Expression::Node& node = used.node(number);
    if (node.op != Operator::kSymbol || name_of(used, node) != "x") continue;
    if (sum >= 0) return false;
    sum = number;
  }
  if (sum < 0) return false;
  while (users[static_cast<size_t>(sum)].size() == 1) {
    const int user = users[static_cast<size_t>(sum)][0];
    const Expression::Node& node = used.node(user);
    if (node.op != Operator::kAdd && !(node.op == Operator::kSub && node.operands[0] == sum)) break;
    sum = user;
  }
  bool reads = false;
  std::vector<bool> others(nodes.size());  // what depends on a site in another way than by the sum
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool site = is_site(used, nodes[i], operands);
    reads = reads || site;
    others[i] = static_cast<int>(i) != sum && (site || std::ranges::any_of(nodes[i].operands, [&](int operand) {
                                                 return operand >= 0 && others[static_cast<size_t>(operand)];
                                               }));
  }
  return reads && !others[static_cast<size_t>(used.root())];
}

bool site_entries_read(const Expression& score, const std::vector<Operand>& operands) {
  std::vector<bool> reads(score.nodes().size());
  for (size_t i = 0; i < reads.size(); ++i) {
    const Expression::Node& node = score.nodes()[i];
    const bool operand_reads = std::ranges::any_of(
        node.operands, [&](int operand) { return operand >= 0 && reads[static_cast<size_t>(operand)]; });
    if (operand_reads && is_site(score, node, operands)) return true;
    reads[i] = operand_reads || node.op == Operator::kRead;
  }
  return false;
}

bool sites_are_shared(const Expression& score, const std::vector<Operand>& operands) {
  const std::optional<SplitScore> split = split_score(score, operands);
  return split && has_sites(split->value, operands) && !has_sites(split->rest, operands);
}

}  // namespace hstujit
