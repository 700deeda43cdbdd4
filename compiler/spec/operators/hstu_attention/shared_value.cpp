#include "compiler/spec/operators/hstu_attention/shared_value.h"

#include <algorithm>

#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {

namespace {

constexpr double kLeastInstructions = 8;  // a value is passed on through shared memory, which takes some, too

// A term of a sum: a node that is added, or subtracted.
struct SignedNode {
  int node;
  bool negative;
};

class Splitter {
 public:
  Splitter(const Expression& score, const std::vector<Operand>& operands)
      : score_(score), users_(score.nodes().size()), varies_(score.nodes().size()) {
    for (size_t i = 0; i < score.nodes().size(); ++i) {
      const Expression::Node& node = score.nodes()[i];
      varies_[i] = varies_by_itself(node, operands);
      for (const int operand : node.operands) {
        if (operand < 0) continue;
        ++users_[static_cast<size_t>(operand)];
        varies_[i] = varies_[i] || varies(operand);
      }
    }
  }

  std::optional<SplitScore> split() {
    for (size_t i = 0; i < score_.nodes().size(); ++i) {
      if (varies_[i]) look_at(static_cast<int>(i));
    }
    if (terms_.empty()) return std::nullopt;
    SplitScore split;
    ExpressionBuilder value;
    std::vector<int> copies(score_.nodes().size(), -1);
    const Term sum = sum_of(value, terms_, copies, {});
    split.value = std::move(value).finish(sum).pruned();
    ExpressionBuilder rest;
    std::ranges::fill(copies, -1);
    in_rest_ = true;
    const Term root = copy(rest, score_.root(), copies);
    split.rest = std::move(rest).finish(root).pruned();
    return split;
  }

 private:
  static bool varies_by_itself(const Expression::Node& node, const Expression::Symbol& symbol,
                               const std::vector<Operand>& operands) {
    constexpr int64_t kSeveral = 2;  // heads of q: where there is one, nothing is shared
    if (node.op == Operator::kSymbol) return symbol.name == "x" || symbol.name == "head";
    const auto operand = std::ranges::find(operands, symbol.name, &Operand::name);
    return operand == operands.end() || operand->varies_by_head(kSeveral) || operand->kind == &head_kind();
  }
  bool varies_by_itself(const Expression::Node& node, const std::vector<Operand>& operands) const {
    if (node.op != Operator::kSymbol && node.op != Operator::kRead) return false;
    return varies_by_itself(node, score_.symbols()[static_cast<size_t>(node.value)], operands);
  }

  bool varies(int node) const { return varies_[static_cast<size_t>(node)]; }
  bool is_sum(int node) const {
    const Operator op = score_.node(node).op;
    return score_.node(node).real && (op == Operator::kAdd || op == Operator::kSub);
  }
  // Whether the node is a part of the sum that its only user is.
  bool continues_sum(int node) const { return is_sum(node) && varies(node) && users_[static_cast<size_t>(node)] == 1; }

  void add_terms(int node, bool negative, std::vector<SignedNode>& terms) const {
    const Expression::Node& sum = score_.node(node);
    for (const size_t side : {0, 1}) {
      const int operand = sum.operands[side];
      const bool subtracted = negative != (side == 1 && sum.op == Operator::kSub);
      if (continues_sum(operand)) {
        add_terms(operand, subtracted, terms);
      } else {
        terms.push_back({operand, subtracted});
      }
    }
  }

  // Keeps what the node uses of parts that do not vary, where it takes more than what was found before.
  void look_at(int node) {
    std::vector<SignedNode> terms;
    if (is_sum(node)) {
      add_terms(node, false, terms);
      std::erase_if(terms, [&](const SignedNode& term) { return varies(term.node) || is_constant(term.node); });
      consider(node, terms);
      return;
    }
    for (const int operand : score_.node(node).operands) {
      if (operand >= 0 && !varies(operand) && score_.node(operand).real) consider(-1, {{operand, false}});
    }
  }

  bool is_constant(int node) const { return score_.node(node).is_constant(); }

  void consider(int sum, const std::vector<SignedNode>& terms) {
    std::vector<bool> used(score_.nodes().size());
    for (const SignedNode& term : terms) used[static_cast<size_t>(term.node)] = true;
    double instructions = 0;
    bool reads = false;
    for (size_t i = used.size(); i-- > 0;) {
      if (!used[i]) continue;
      for (const int operand : score_.nodes()[i].operands) {
        if (operand >= 0) used[static_cast<size_t>(operand)] = true;
      }
      instructions += score_instructions(score_, static_cast<int>(i));
      reads = reads || score_.nodes()[i].op == Operator::kRead;
    }
    if (!reads || instructions < std::max(kLeastInstructions, instructions_)) return;
    instructions_ = instructions;
    sum_ = sum;
    terms_ = terms;
  }

  // The sum of the terms and of `last`, which may be none.
  Term sum_of(ExpressionBuilder& builder, const std::vector<SignedNode>& terms, std::vector<int>& copies, Term last) {
    Term sum;
    for (const SignedNode& term : terms) {
      const Term next = copy(builder, term.node, copies);
      if (sum.node < 0) {
        sum = term.negative ? builder.call(Function::kNegate, next) : next;
      } else {
        sum = term.negative ? builder.sub(sum, next) : builder.add(sum, next);
      }
    }
    if (last.node < 0) return sum;
    return sum.node < 0 ? last : builder.add(sum, last);
  }

  // Copies the node and what it is made of. In the rest of the score, the sum has the value in place of its terms.
  Term copy(ExpressionBuilder& builder, int number, std::vector<int>& copies) {
    int& known = copies[static_cast<size_t>(number)];
    if (known >= 0) return {known};
    const Term made = make(builder, number, copies);
    copies[static_cast<size_t>(number)] = made.node;
    return made;
  }

  Term make(ExpressionBuilder& builder, int number, std::vector<int>& copies) {
    const Expression::Node& node = score_.node(number);
    if (in_rest_ && sum_ < 0 && terms_[0].node == number) return builder.real_symbol(kSharedValue);
    if (in_rest_ && sum_ == number) {
      std::vector<SignedNode> terms;
      add_terms(number, false, terms);
      std::erase_if(terms, [&](const SignedNode& term) { return !varies(term.node) && !is_constant(term.node); });
      return sum_of(builder, terms, copies, builder.real_symbol(kSharedValue));
    }
    const auto operand = [&](size_t i) {
      return node.operands[i] < 0 ? Term() : copy(builder, node.operands[i], copies);
    };
    switch (node.op) {
      case Operator::kConstant:
        if (node.real) return builder.real(node.number);
        return node.boolean ? builder.truth(node.value != 0) : builder.integer(node.value);
      case Operator::kSymbol:
        return node.real ? builder.real_symbol(name_of(node)) : builder.number(name_of(node));
      case Operator::kRead:
        return builder.read(name_of(node), node.real, operand(0));
      case Operator::kCall: {
        const Term a = operand(0), b = operand(1);
        return builder.call(node.function, a, b);
      }
      default: {
        const Term a = operand(0), b = operand(1), c = operand(2);
        return builder.apply(node.op, a, b, c);
      }
    }
  }

  const std::string& name_of(const Expression::Node& node) const {
    return score_.symbols()[static_cast<size_t>(node.value)].name;
  }
  const Expression& score_;
  std::vector<int> users_;
  std::vector<bool> varies_;
  bool in_rest_ = false;
  double instructions_ = 0;
  int sum_ = -1;                   // whose terms are split off; -1: they are one node, wherever it is used
  std::vector<SignedNode> terms_;  // what is split off
};

}  // namespace

std::optional<SplitScore> split_score(const Expression& score, const std::vector<Operand>& operands) {
  const Expression used = score.pruned();
  return Splitter(used, operands).split();
}

std::optional<SplitScore> split_score(const HstuAttentionParams& params) {
  if (params.operands.empty()) return std::nullopt;
  const Result<Expression> score = parse_score(params);
  return score.ok() ? split_score(*score, own_operands(params.operands, params.heads)) : std::nullopt;
}

}  // namespace hstujit
